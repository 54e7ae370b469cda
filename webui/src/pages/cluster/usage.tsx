import { useState } from "react";

import { useData } from "../../api/data";
import { Card, Empty, Loaded } from "../../parts/basics";
import { csv, save } from "../../parts/file";
import { number } from "../../parts/format";

interface Used {
  day: string;
  user: string;
  label: string;
  slotHours: number;
}
type By = "user" | "label";

/** Slot hours by day and user, or by day and label. */
export function Usage() {
  const [by, setBy] = useState<By>("user");
  const found = useData<{ usage: Used[] }>("cluster/usage", []);
  return (
    <Card
      title="Use by day"
      more={
        <span className="actions">
          <label>
            by{" "}
            <select value={by} onChange={(event) => setBy(event.target.value as By)}>
              <option>user</option>
              <option>label</option>
            </select>
          </label>
          <button
            type="button"
            disabled={!found.data?.usage.length}
            onClick={() =>
              save(
                "usage.csv",
                csv([
                  ["day", "user", "label", "slot hours"],
                  ...found.data!.usage.map((one) => [one.day, one.user, one.label, one.slotHours]),
                ]),
              )
            }
          >
            Export CSV
          </button>
        </span>
      }
    >
      <Loaded found={found}>
        {({ usage }) => {
          const days = [...new Set(usage.map((one) => one.day))];
          const names = [...new Set(usage.map((one) => one[by]))].sort();
          const sum = (day: string, name: string) =>
            usage.filter((one) => one.day === day && one[by] === name).reduce((total, one) => total + one.slotHours, 0);
          return usage.length ? (
            <div className="scroll">
              <table aria-label="Slot hours by day">
                <thead>
                  <tr>
                    <th>Day (UTC)</th>
                    {names.map((name) => (
                      <th key={name} className="num">
                        {name}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {days.map((day) => (
                    <tr key={day}>
                      <th scope="row">{day}</th>
                      {names.map((name) => (
                        <td key={name} className="num" title={`${sum(day, name)} slot hours`}>
                          {number(sum(day, name), 3)}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty>No slot was used in the last 30 days.</Empty>
          );
        }}
      </Loaded>
    </Card>
  );
}
