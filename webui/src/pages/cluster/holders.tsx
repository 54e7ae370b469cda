import { Link } from "react-router";

import { Card } from "../../ui/card";
import { Cut } from "../../ui/text";
import type { Holder } from "./facts";

/** The holders of slots; pointing at one highlights its slots and fades the others. */
export function Holders({ list, lit, onLight }: { list: Holder[]; lit: string | null; onLight: (id: string | null) => void }) {
  return (
    <Card title="Running on the slots">
      <ul className="holders">
        {list.map((one) => (
          <li
            key={one.id}
            className={one.id === lit ? "lit" : ""}
            onMouseEnter={() => onLight(one.id)}
            onMouseLeave={() => onLight(null)}
            onFocus={() => onLight(one.id)}
            onBlur={() => onLight(null)}
          >
            <i className="sw" style={{ background: one.colour }} />
            {one.experiment === null ? (
              <Cut>{one.name}</Cut>
            ) : (
              <Link className="cut" to={`/experiments/${one.experiment}/overview`} title={one.name}>
                {one.experiment} {one.name}
              </Link>
            )}
            <b>{one.slots}</b>
          </li>
        ))}
        {!list.length && <li className="ink3">No slot is in use.</li>}
      </ul>
    </Card>
  );
}
