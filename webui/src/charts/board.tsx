/** The charts of trials: the searcher's metric first, then all others in sections. */

import { ChevronRight, Pin } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";

import { Empty } from "../ui/status";
import { useChartKeys } from "./chart";
import { Edge, useHeight } from "./edge";
import { useLink, useView } from "./link";
import { MetricChart, type Shared } from "./metric";
import { isProfile, isTimed, type Name } from "./names";
import { usePins } from "./own";
import { type Chart, chartsOf, finding, isOpen, PINNED, pinnedFirst, type Section, sectionsOf } from "./sections";
import { titleOf } from "./titles";
import { Tools, type Ways } from "./tools";
import { Visible } from "./visible";
import { many } from "../parts/format";

const CHROME_PX = 52;
const LEAD_PX = 280;

interface Props extends Shared {
  names: Name[];
  /** Name of the searcher's metric; its chart comes first. */
  searched: string;
  smaller: boolean;
  ways?: Ways;
  /** Shown beside the leading chart. */
  beside?: ReactNode;
  /** Shown below the leading chart: the legend of its colours. */
  below?: ReactNode;
  /** No leading chart: the searcher's metric is the first of its section. */
  flat?: boolean;
  /** Only machine metrics, only metrics that scripts reported, or both. */
  of?: "machine" | "scripts" | "both";
  /** Shown when there is nothing to draw. */
  none?: ReactNode;
}

export function Board({ names, searched, smaller, ways = [], beside, below, of = "scripts", flat = false, none, ...shared }: Props) {
  const view = useView();
  const { params } = useLink();
  const { pinned } = usePins();
  useChartKeys(() => view.set({ z: "" }));
  const group = params.get("g") ?? "";
  const mine = useMemo(() => names.filter((name) => of === "both" || isProfile(name.group) === (of === "machine")), [names, of]);
  const groups = useMemo(() => [...new Set(mine.map((name) => name.group))].sort(), [mine]);
  // Metrics known by time only share no batches with other metrics, so they cannot be an x axis.
  const axes = useMemo(() => [...new Set(mine.filter((name) => !isTimed([name.group])).map((name) => name.name))].sort(), [mine]);
  const all = useMemo(() => chartsOf(mine.filter((name) => !group || name.group === group)), [mine, group]);
  const matching = useMemo(() => finding(all, view.find), [all, view.find]);
  const lead = flat ? undefined : matching.find((chart) => chart.name === searched && !chart.profile);
  const sections = useMemo(
    () =>
      pinnedFirst(
        sectionsOf(
          matching.filter((chart) => chart !== lead),
          searched,
        ),
        pinned,
      ),
    [matching, lead, searched, pinned],
  );
  if (!mine.length)
    return none ?? <Empty title="No metrics have been reported yet">They appear here when the script first reports one.</Empty>;
  const note =
    matching.length === all.length
      ? many(all.length, "metric")
      : `${matching.length.toLocaleString("en")} of ${many(all.length, "metric")}`;
  const timed = all.length > 0 && all.every((each) => isTimed(each.groups));
  const options = { group, ...shared };
  return (
    <div className="board" data-columns={view.columns || (flat ? 2 : undefined)}>
      <Tools names={axes} groups={groups} ways={ways} note={note} timed={timed} />
      {(lead ?? beside) && (
        <div className={`lead ${beside ? "two" : ""}`}>
          {lead ? (
            <Visible name={lead.name} height={LEAD_PX + CHROME_PX}>
              {() => (
                <MetricChart
                  {...options}
                  metric={lead.name}
                  note={subtitle(lead, searched)}
                  searched
                  smaller={smaller}
                  height={LEAD_PX}
                  below={below}
                />
              )}
            </Visible>
          ) : (
            <div />
          )}
          {beside}
        </div>
      )}
      {sections.map((section, at) => (
        <Charts
          key={section.title}
          section={section}
          at={at}
          alone={sections.length === 1}
          searching={view.find !== ""}
          draw={(chart, height) => (
            <MetricChart
              {...options}
              metric={chart.name}
              profile={chart.profile}
              timed={isTimed(chart.groups)}
              searched={chart.name === searched}
              smaller={smaller}
              note={subtitle(chart, searched)}
              height={height}
            />
          )}
        />
      ))}
      {!matching.length && <Empty title="No metric of that name">Every word you type must occur in the name.</Empty>}
    </div>
  );
}

function subtitle({ name, groups, profile }: Chart, searched: string): string {
  const { unit } = titleOf(name, profile);
  if (unit) return unit;
  const words = profile ? groups.map((group) => group.slice(8)).join(", ") : groups.join(" and ");
  return name === searched ? `${words}, the metric of the search` : words;
}

const called = ({ name, profile }: Chart) => titleOf(name, profile).text;

function Charts({
  section: { title, charts },
  at,
  alone,
  searching,
  draw,
}: {
  section: Section;
  at: number;
  alone: boolean;
  searching: boolean;
  draw: (chart: Chart, height: number) => ReactNode;
}) {
  const [asked, setAsked] = useState<boolean | undefined>();
  const [height, setHeight] = useHeight();
  const open = isOpen(at, asked, searching);
  const range = many(charts.length, "metric");
  return (
    <section className="charts-of" aria-label={title || "Metrics"}>
      {!(alone && title === "") && (
        <button type="button" className="sect" aria-expanded={open} onClick={() => setAsked(!open)}>
          <ChevronRight className="s" /> {title === PINNED && <Pin className="s" />} {title || "Metrics"}{" "}
          <span className="ink3">
            {open
              ? charts.length.toLocaleString("en")
              : `${range}: ${called(charts[0]!)}${charts.length > 1 ? ` to ${called(charts.at(-1)!)}` : ""}`}
          </span>
          <hr />
        </button>
      )}
      {open && (
        <div className="charts">
          {charts.map((chart) => (
            <Visible key={`${chart.profile} ${chart.name}`} name={chart.name} height={height + CHROME_PX}>
              {() => (
                <>
                  {draw(chart, height)}
                  <Edge height={height} onChange={setHeight} />
                </>
              )}
            </Visible>
          ))}
        </div>
      )}
    </section>
  );
}
