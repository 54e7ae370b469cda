/** Below the leading chart: the legend of its colours. */

import { Stroke } from "./foot";
import { useLink } from "./link";
import { kindsOf, type Looks } from "./looks";
import { many } from "../parts/format";

const MOST = 12;

export function Kinds({ looks, by, smaller, drawn, all }: { looks: Looks; by: string; smaller: boolean; drawn: number; all: number }) {
  const { set } = useLink();
  const values = [...looks.values()];
  const isScale = values.some((kind) => kind.colour.startsWith("share:"));
  const front = values.filter((kind) => kind.front).length;
  return (
    <>
      {!by && (
        <>
          {front > 0 && (
            <li>
              <Stroke colour="--s1" /> {front} chosen
            </li>
          )}
          {values.length > front && (
            <li>
              <Stroke colour="--s-rest" /> {many(values.length - front, "other")}
            </li>
          )}
        </>
      )}
      {isScale && (
        <li>
          {by === "metric" ? "poor" : "low"} <i className="ramp" aria-hidden /> {by === "metric" ? "good" : "high"}
        </li>
      )}
      {by &&
        !isScale &&
        kindsOf(looks)
          .slice(0, MOST)
          .map((kind) => (
            <li key={kind.why}>
              <Stroke colour={kind.colour} dash={kind.dash} /> <span className="cut">{kind.why}</span>{" "}
              <span className="ink3">{kind.count}</span>
            </li>
          ))}
      <li className="ink3">{smaller ? "lower is better" : "higher is better"}</li>
      {drawn < all && (
        <li>
          <button type="button" className="textlink" onClick={() => set({ n: String(all) })}>
            the best {drawn.toLocaleString("en")} of {all.toLocaleString("en")} are drawn: draw all
          </button>
        </li>
      )}
    </>
  );
}
