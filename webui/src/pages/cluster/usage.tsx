import { Download } from "lucide-react";
import { useState } from "react";

import { useData } from "../../api/data";
import { csv, save } from "../../parts/file";
import { little, number } from "../../parts/format";
import { Button, Segments } from "../../ui/button";
import { Card } from "../../ui/card";
import { Empty, Loaded } from "../../ui/status";

interface Used {
  day: string;
  user: string;
  label: string;
  slotHours: number;
}
type By = "user" | "label";

const DAYS = 28;
const NAMED = 6;
const DAY_MS = 86_400_000;
const OTHERS = "others";
const day = (at: Date) => at.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

const sum = (all: Used[]) => all.reduce((total, usage) => total + usage.slotHours, 0);

/** Slot hours per day, in the colours of the largest users or labels. */
export function Usage() {
  const [by, setBy] = useState<By>("user");
  const answer = useData<{ usage: Used[] }>(`cluster/usage?days=${DAYS}`, []);
  const all = answer.data?.usage ?? [];
  const file = () =>
    save(
      "usage.csv",
      csv([["day", "user", "label", "slot hours"], ...all.map((usage) => [usage.day, usage.user, usage.label, usage.slotHours])]),
    );
  return (
    <Card
      title="Slot hours by day"
      more={
        <>
          <span>
            {little(sum(all))} in {DAYS} days
          </span>
          <Segments
            name="By"
            value={by}
            options={[
              ["user", "User"],
              ["label", "Tag"],
            ]}
            onChange={setBy}
            small
          />
          <Button small kind="ghost" icon={<Download />} not={all.length ? undefined : "There is nothing to export"} onClick={file}>
            CSV
          </Button>
        </>
      }
    >
      <Loaded answer={answer}>
        {({ usage }) => (usage.length ? <Chart usage={usage} by={by} /> : <Empty>No slot was used in the last {DAYS} days.</Empty>)}
      </Loaded>
    </Card>
  );
}

function Chart({ usage, by }: { usage: Used[]; by: By }) {
  const totals = new Map<string, number>();
  for (const day of usage) totals.set(day[by] || "none", (totals.get(day[by] || "none") ?? 0) + day.slotHours);
  const ranked = [...totals].toSorted(([, a], [, b]) => b - a).map(([name]) => name);
  const names = ranked.length > NAMED ? [...ranked.slice(0, NAMED), OTHERS] : ranked;
  const called = (usage: Used) => (names.includes(usage[by] || "none") ? usage[by] || "none" : OTHERS);
  const days = Array.from({ length: DAYS }, (_, at) => new Date(Date.now() - (DAYS - 1 - at) * DAY_MS));
  const of = (at: Date) => usage.filter((usage) => usage.day === at.toISOString().slice(0, 10));
  const most = Math.max(...days.map((at) => sum(of(at))), 1e-9);
  const colour = (name: string) => (name === OTHERS ? "var(--s-rest)" : `var(--s${names.indexOf(name) + 1})`);
  return (
    <>
      <p className="usage-top xs ink3" aria-hidden="true">
        {little(most)} h
      </p>
      <div className="usage" role="img" aria-label={`Slot hours by day and ${by}, at most ${number(most, 3)} on one day`}>
        {days.map((at) => {
          const rows = of(at);
          const parts = names
            .map((name) => [name, sum(rows.filter((row) => called(row) === name))] as const)
            .filter(([, hours]) => hours > 0);
          const hoursByPart = parts.map(([name, hours]) => `${name}: ${number(hours, 3)} h`).join("\n");
          return (
            <span key={at.toISOString()} title={`${day(at)}\n${hoursByPart || "nothing"}`}>
              {parts.map(([name, hours]) => (
                <i key={name} style={{ height: `${(100 * hours) / most}%`, background: colour(name) }} />
              ))}
            </span>
          );
        })}
      </div>
      <div className="ends xs ink3" aria-hidden="true">
        {days
          .filter((_, at) => at % 7 === 0 || at === DAYS - 1)
          .map((at) => (
            <span key={at.toISOString()}>{day(at)}</span>
          ))}
      </div>
      <div className="chips sm ink2" style={{ marginTop: 6 }}>
        {names.map((name) => (
          <span key={name} className="nowrap">
            <i className="sw" style={{ background: colour(name) }} />{" "}
            <span className="tag" style={{ background: "none", padding: 0 }}>
              {name}
            </span>
          </span>
        ))}
      </div>
    </>
  );
}
