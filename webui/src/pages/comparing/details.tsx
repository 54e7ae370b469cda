import { Eye, EyeOff } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router";

import type { Trial } from "../../api/types";
import type { Difference } from "../../charts/differences";
import { Stroke } from "../../charts/foot";
import { useLink } from "../../charts/link";
import type { Looks } from "../../charts/looks";
import { duration, number } from "../../parts/format";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { State } from "../../ui/state";
import { Time } from "../../ui/text";

/** A column per trial and a row per field: the fields that differ, or with `all` every field. */
export function Details({ trials, rows, looks, all = false }: { trials: Trial[]; rows: Difference[]; looks: Looks; all?: boolean }) {
  const { params, set } = useLink();
  const only = (params.get("d") ?? (all ? "" : "1")) !== "0" && (!all || params.get("d") === "1");
  const differing = rows.filter((row) => row.differs);
  const shown = only ? differing : rows;
  return (
    <Card
      title="What differs"
      flush
      more={
        <>
          <span>
            {differing.length.toLocaleString("en")} of {rows.length.toLocaleString("en")} fields
          </span>
          <Button small kind="ghost" icon={only ? <Eye /> : <EyeOff />} onClick={() => set({ d: only ? "0" : "1" })}>
            {only ? "All fields" : "Only what differs"}
          </Button>
        </>
      }
    >
      <div className="wide-table" tabIndex={0}>
        <table aria-label="Details">
          <thead>
            <tr>
              <th scope="col">Field</th>
              {trials.map((trial) => (
                <th key={trial.id} scope="col">
                  {looks.has(trial.id) && <Stroke colour={looks.get(trial.id)!.colour} dash={looks.get(trial.id)!.dash} />}{" "}
                  <Link to={`/experiments/${trial.experimentId}/trials/${trial.id}/overview`}>
                    {trial.experimentId} / {trial.id}
                  </Link>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Plain name="State" of={trials} cell={(trial) => <State state={trial.state} why={trial.stateReason} />} />
            <Plain name="Started" of={trials} cell={(trial) => <Time at={trial.startTime} />} />
            <Plain name="Ran" of={trials} cell={(trial) => duration(trial.wallClockTime)} />
            {shown.map((row) => (
              <Line key={row.name} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

const Plain = ({ name, of, cell }: { name: string; of: Trial[]; cell: (trial: Trial) => ReactNode }) => (
  <tr>
    <th scope="row">{name}</th>
    {of.map((trial) => (
      <td key={trial.id}>{cell(trial)}</td>
    ))}
  </tr>
);

const words = (value: unknown): string =>
  typeof value === "number" ? number(value, 6) : typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);

/** Values that differ from the first have a background of their own. */
const Line = ({ row }: { row: Difference }) => (
  <tr className={row.differs ? "differs" : undefined}>
    <th scope="row" title={row.name}>
      {row.name}
      {row.differs && <span className="vh"> (differs)</span>}
    </th>
    {row.values.map((value, at) => (
      <td key={at} className={JSON.stringify(value) === JSON.stringify(row.values[0]) ? "mono" : "mono other"} title={words(value)}>
        {words(value)}
      </td>
    ))}
  </tr>
);
