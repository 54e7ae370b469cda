import { Link } from "react-router";

import { Card } from "../../ui/card";
import { Cut } from "../../ui/text";
import type { Holder } from "./facts";

/** The holders of slots; pointing at one highlights its slots and fades the others. */
export function Holders({ list, lit, onLight }: { list: Holder[]; lit: string | null; onLight: (id: string | null) => void }) {
  return (
    <Card title="Running on the slots">
      <ul className="holders">
        {list.map((holder) => (
          <li
            key={holder.id}
            className={holder.id === lit ? "lit" : ""}
            onMouseEnter={() => onLight(holder.id)}
            onMouseLeave={() => onLight(null)}
            onFocus={() => onLight(holder.id)}
            onBlur={() => onLight(null)}
          >
            <i className="sw" style={{ background: holder.colour }} />
            {holder.experiment === null ? (
              <Cut>{holder.name}</Cut>
            ) : (
              <Link className="cut" to={`/experiments/${holder.experiment}/overview`} title={holder.name}>
                {holder.experiment} {holder.name}
              </Link>
            )}
            <b>{holder.slots}</b>
          </li>
        ))}
        {!list.length && <li className="ink3">No slot is in use.</li>}
      </ul>
    </Card>
  );
}
