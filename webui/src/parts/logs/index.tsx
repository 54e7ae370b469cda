/** The log of a trial or task: the cause of a failure first, then a window that moves through the whole log. */

import { useQuery } from "@tanstack/react-query";
import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useParams, useSearchParams } from "react-router";

import { get } from "../../api/client";
import { Button } from "../../ui/button";
import { Empty, Failure, Loaded, Loading } from "../../ui/status";
import { toast } from "../../ui/toast";
import { CauseCard } from "./card";
import type { Cause } from "./cause";
import { type Change, NO, Tools } from "./controls";
import { filtersOf, hits, isFiltered, shown } from "./filters";
import { Foot } from "./foot";
import { LineList, type View } from "./list";
import "./logs.css";
import { plain } from "./paint";
import { type Target, useReading } from "./reading";
import { Source, type Summary, whole } from "./source";
import { Strip } from "./strip";
import type { Line } from "./window";
import { many } from "../format";

const FRESH_MS = 5000;
const SETTLED_MS = 150;

interface Props {
  /** Path of the log's owner, such as `trials/7`. */
  source: string;
  command: string;
  /** The task ended in an error, so the log opens there. */
  failed?: boolean;
}

export function Logs(props: Props) {
  const [over, setOver] = useState(false);
  const { source, failed } = props;
  const answer = useQuery({
    queryKey: ["log", source],
    queryFn: () => get<Summary>(`${source}/logs/summary`),
    refetchInterval: over ? false : FRESH_MS,
  });
  const cause = useQuery({
    queryKey: ["log cause", source],
    enabled: Boolean(failed),
    queryFn: async () => (await get<{ cause: Cause | null }>(`${source}/logs/cause`)).cause,
    // The last lines arrive a moment after the end.
    refetchInterval: over ? false : FRESH_MS,
  });
  // If the cause cannot be loaded, show the log without it.
  if (failed && cause.isPending) return <Loaded answer={cause}>{() => null}</Loaded>;
  return (
    <Loaded answer={answer}>
      {(summary) => <Log key={source} {...props} summary={summary} cause={cause.data ?? null} onOver={setOver} />}
    </Loaded>
  );
}

interface LogProps extends Props {
  summary: Summary;
  cause: Cause | null;
  onOver: (over: boolean) => void;
}

function Log({ source, command, summary, cause, onOver }: LogProps) {
  const [params, setParams] = useSearchParams();
  const filters = filtersOf(params);
  const chosen = params.get("line") ? Number(params.get("line")) : null;
  const change: Change = (values) =>
    setParams(
      (before) => {
        Object.entries(values).forEach(([name, value]) => (value ? before.set(name, value) : before.delete(name)));
        return before;
      },
      { replace: true },
    );

  const opening = useRef<Target>(openingOf(params, cause)).current;
  const mark = filters.text && filters.regex ? { mark: filters.text } : {};
  const isAll = !isFiltered(filters);
  const reading = useReading(
    source,
    { ...shown(filters), ...mark },
    chosen !== null ? { id: chosen } : opening,
    Number(summary.lastLine ?? 0),
    isAll,
  );
  const [view, setView] = useState<View>({ first: 0, last: 0 });
  const [opened, setOpened] = useState<{ id: number; text: string } | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  useFill(frame, cause);
  useEffect(() => onOver(reading.over), [onOver, reading.over]);
  const line = reading.lines.find((line) => line.id === chosen);

  const leap = (id: string | null) => {
    if (id === null) return;
    // Filters may hide the line.
    if (isAll) change({ line: id });
    else setParams(new URLSearchParams({ line: id }), { replace: true });
    reading.go({ id: Number(id) });
  };
  const asked = (wanted: Record<string, unknown>) => new Source(source, wanted, new AbortController().signal, reading.tellSearched);
  const next = async (wanted: Record<string, unknown>[], back: boolean, what: string) => {
    const from = chosen ?? reading.lines[0]?.id ?? 0;
    const pages = await Promise.all(
      wanted.map((filters) =>
        back ? asked(filters).before({ beforeId: from }, 1) : asked(filters).behind({ afterId: chosen ?? from - 1 }, 1),
      ),
    );
    const ids = pages.flatMap((page) => page.lines.map((line) => line.id));
    if (!ids.length) return reading.tell(`No ${what} ${back ? "before" : "behind"} this line.`);
    const id = back ? Math.max(...ids) : Math.min(...ids);
    change({ line: String(id) });
    reading.go({ id });
  };
  const hit = (back: boolean) => void next([hits(filters)], back, "hit");
  const error = (back: boolean) => void next(ERRORS, back, "error");
  const onKey = (key: string): boolean => {
    if (key === "Home") reading.go("start");
    else if (key === "End") reading.go("end");
    else if (key === "n" || key === "N") (filters.text ? hit : error)(key === "N");
    else if (key === "e") leap(summary.firstError);
    else if (key === "Escape") change({ line: null });
    else return false;
    return true;
  };
  const later = useRef<ReturnType<typeof setTimeout>>(undefined);
  const goTo = (number: number) => {
    clearTimeout(later.current);
    later.current = setTimeout(() => reading.go({ number }), SETTLED_MS);
  };
  const isAtCause = cause !== null && !reading.following && reading.goal?.id === Number(cause.said.id);
  const links = useLinks(cause);
  const copy = () => void copyLines(reading.lines).then(() => toast({ text: `${many(reading.lines.length, "line")} copied.` }));

  return (
    <div className="logs" ref={frame}>
      {cause && <CauseCard cause={cause} onLine={leap} {...links} />}
      <section className="card viewer" aria-label="Log">
        <Tools
          source={source}
          filters={filters}
          summary={summary}
          params={params}
          place={reading.following ? "end" : isAtCause ? "cause" : ""}
          hasCause={cause !== null}
          over={reading.over}
          onChange={change}
          onHit={hit}
          onPlace={(place) => {
            if (place === "cause") leap(cause!.said.id);
            else if (place === "errors") error(false);
            else if (place) reading.go(place);
          }}
          onCopy={copy}
          onFull={() => void frame.current?.requestFullscreen()}
        />
        {reading.error ? <Failure error={reading.error} /> : null}
        {!reading.lines.length && !reading.error && reading.busy && <Loading />}
        {!reading.lines.length && !reading.error && !reading.busy && (
          <Empty>
            {!isAll
              ? "No lines match."
              : reading.over
                ? "The task printed nothing."
                : "No output yet. Lines appear here as they are printed."}
          </Empty>
        )}
        <div className="around">
          <LineList
            reading={reading}
            cause={cause}
            fold={isAll && params.get("fold") !== NO}
            collapse={params.get("collapse") === "1"}
            stamps={params.get("times") !== NO}
            wrap={params.get("wrap") !== NO}
            ranked={summary.rankIds.length > 0}
            part={filters.regex ? "" : filters.text}
            chosen={chosen}
            opened={opened}
            onChoose={(id) => change({ line: id === chosen ? null : String(id) })}
            onKey={onKey}
            onView={setView}
          />
          <Strip summary={summary} view={view} onGo={goTo} />
          {reading.came > 0 && !reading.following && (
            <Button className="came" kind="primary" small icon={<ArrowDown />} onClick={() => reading.go("end")}>
              {reading.came.toLocaleString("en")} new {reading.came === 1 ? "line" : "lines"}
            </Button>
          )}
        </div>
        <Foot
          reading={reading}
          summary={summary}
          view={view}
          filters={filters}
          command={command}
          line={line}
          onContext={isAll ? undefined : () => leap(String(chosen))}
          onCopy={() => line && void copyLines([line])}
          onWhole={async () => line && setOpened({ id: line.id, text: await whole(source, line) })}
        />
      </section>
    </div>
  );
}

/** Errors, and tracebacks that a script printed without a level. */
const ERRORS = [{ levels: ["LOG_LEVEL_ERROR", "LOG_LEVEL_CRITICAL"] }, { searchText: "Traceback (most recent call last)" }];

/** Where a log opens unless a link names a line. */
function openingOf(params: URLSearchParams, cause: Cause | null): Target {
  const at = params.get("at");
  if (at) return { at };
  return cause && !isFiltered(filtersOf(params)) ? { id: Number(cause.said.id) } : "end";
}

/** Addresses of the code at the cause, and of the machine metrics at that time; for trials only. */
function useLinks(cause: Cause | null) {
  const { id, trial } = useParams();
  return useMemo(() => {
    if (!cause || !id) return {};
    const code = cause.place ? `/experiments/${id}/code?file=${encodeURIComponent(cause.place.file)}&at=${cause.place.line}` : undefined;
    return { code, machine: trial ? `/experiments/${id}/trials/${trial}/profiler` : undefined };
  }, [cause, id, trial]);
}

const BELOW_PX = 16;
const LEAST_PX = 420;

/** The log takes the rest of the window's height below the tabs. */
function useFill(frame: React.RefObject<HTMLDivElement | null>, again: unknown) {
  const fill = useCallback(() => {
    const element = frame.current;
    if (!element) return;
    const top = element.getBoundingClientRect().top + window.scrollY;
    element.style.setProperty("--fill", `${Math.max(LEAST_PX, window.innerHeight - top - BELOW_PX)}px`);
  }, [frame]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `again` changes when something above the log does
  useLayoutEffect(() => {
    fill();
    const watcher = new ResizeObserver(fill);
    watcher.observe(document.body);
    window.addEventListener("resize", fill);
    return () => {
      watcher.disconnect();
      window.removeEventListener("resize", fill);
    };
  }, [fill, again]);
}

const asText = (line: Line) =>
  `[${line.timestamp}]${line.rankId === null ? "" : ` [rank=${line.rankId}]`} || ${line.level ? `${line.level}: ` : ""}${plain(line.log)}\n`;

const copyLines = async (lines: Line[]) => navigator.clipboard?.writeText(lines.map(asText).join(""));
