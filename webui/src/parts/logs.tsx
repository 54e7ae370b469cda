import { useEffect, useMemo, useRef, useState } from "react";
import { useSearchParams } from "react-router";

import { query, stream } from "../api/client";
import type { LogLine } from "../api/types";
import { Copyable, Empty, Failure } from "./basics";

const KEPT = 5000;
const LEVELS = ["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];
const FLUSH_MS = 100;

interface Filters {
  level: string;
  rank: string;
  text: string;
}

function pathOf(source: string, filters: Filters): string {
  const levels = filters.level ? LEVELS.slice(LEVELS.indexOf(filters.level)).map((one) => `LOG_LEVEL_${one}`) : [];
  return `${source}/logs${query({ follow: true, levels, rankIds: filters.rank, searchText: filters.text })}`;
}

/** All lines that fit, and each new one, the newest few thousand kept. */
function useLines(path: string) {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [over, setOver] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    let coming: LogLine[] = [];
    const flush = () => {
      if (coming.length) {
        const fresh = coming;
        coming = [];
        setLines((before) => [...before, ...fresh].slice(-KEPT));
      }
    };
    const timer = setInterval(flush, FLUSH_MS);
    setLines([]);
    setError(null);
    setOver(false);
    (async () => {
      try {
        for await (const page of stream<LogLine>(path, stop.signal)) coming.push(...page);
        setOver(true);
      } catch (failure) {
        if (!stop.signal.aborted) setError(failure);
      }
      flush();
    })();
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [path]);
  return { lines, error, over };
}

/** The log of a trial or task; `source` is its path, such as `trials/7`. */
export function Logs({ source, command }: { source: string; command: string }) {
  const [params, setParams] = useSearchParams();
  const filters: Filters = {
    level: params.get("level") ?? "",
    rank: params.get("rank") ?? "",
    text: params.get("text") ?? "",
  };
  const set = (name: keyof Filters, value: string) =>
    setParams((before) => (value ? before.set(name, value) : before.delete(name), before), { replace: true });
  const { lines, error, over } = useLines(pathOf(source, filters));
  const ranks = useMemo(() => [...new Set(lines.map((line) => line.rankId))].filter((one) => one !== null).sort((a, b) => a - b), [lines]);
  const box = useRef<HTMLDivElement>(null);
  const [tail, setTail] = useState(true);
  const firstError = lines.findIndex((line) => /ERROR|CRITICAL/.test(line.level) || line.log.startsWith("Traceback"));

  useEffect(() => {
    if (tail && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, tail]);
  const onScroll = () => {
    const element = box.current!;
    setTail(element.scrollHeight - element.scrollTop - element.clientHeight < 40);
  };
  const jump = () => box.current?.children[firstError]?.scrollIntoView({ block: "center" });

  return (
    <div>
      <div className="controls">
        <label>
          level
          <select value={filters.level} onChange={(event) => set("level", event.target.value)}>
            <option value="">all</option>
            {LEVELS.map((one) => (
              <option key={one} value={one}>{`${one} and above`}</option>
            ))}
          </select>
        </label>
        <label>
          rank
          <select value={filters.rank} onChange={(event) => set("rank", event.target.value)}>
            <option value="">all</option>
            {[...new Set([...ranks.map(String), filters.rank].filter(Boolean))].map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          search
          <input
            type="search"
            defaultValue={filters.text}
            onKeyDown={(event) => event.key === "Enter" && set("text", event.currentTarget.value)}
            onBlur={(event) => event.currentTarget.value !== filters.text && set("text", event.currentTarget.value)}
          />
        </label>
        <button type="button" disabled={firstError < 0} onClick={jump}>
          First error
        </button>
        <span className="soft" role="status">
          {lines.length >= KEPT ? `the newest ${KEPT} lines` : `${lines.length} lines`}
          {over ? "" : tail ? " · following" : " · not following"}
        </span>
      </div>
      {error ? <Failure error={error} /> : null}
      {!lines.length && !error && <Empty>{over ? "No line fits." : "No lines yet; they appear here as they are printed."}</Empty>}
      <div className="log" ref={box} onScroll={onScroll} tabIndex={0} aria-label="Log lines" role="log" aria-live="off">
        {lines.map((line) => (
          <div key={line.id} className={`line ${line.level.replace("LOG_LEVEL_", "")} ${line.stdtype}`}>
            <time title={line.timestamp}>{line.timestamp.slice(11, 23)}</time>
            {line.rankId !== null && <span className="rank">{line.rankId}</span>}
            <span className="text">{line.log.replace(/\n$/, "").replace(/\x1b\[[0-9;]*m/g, "")}</span>
          </div>
        ))}
      </div>
      <p className="soft">
        The same in a terminal: <Copyable text={command} />
      </p>
    </div>
  );
}
