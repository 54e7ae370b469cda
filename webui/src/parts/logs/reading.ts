/** Holds a window of a log, moves it, and makes it follow the end of the log. */

import { useCallback, useEffect, useRef, useState } from "react";

import { ApiError } from "../../api/client";
import { Source } from "./source";
import { before, behind, type Line, NOTHING, Recent, type Stretch } from "./window";

const PAGE = 200;
const FLUSH_MS = 100;
const AGAIN_MS = 1000;

export type Target = { id: number } | { number: number } | { at: string } | "start" | "end";

export interface Reading extends Stretch {
  error: unknown;
  /** A request for lines is pending. */
  busy: boolean;
  /** Number of the line that a long search has reached; 0 if none is running. */
  searched: number;
  /** No further line will come. */
  over: boolean;
  /** Lines that arrived while the window was elsewhere. */
  came: number;
  following: boolean;
  /** The line of the last jump; `turn` distinguishes two jumps to the same line. */
  goal: { id: number; turn: number } | null;
  /** A message to the user; cleared by the next move. */
  announced: string;
  tell: (word: string) => void;
  tellSearched: (number: number) => void;
  go: (target: Target) => void;
  grow: (back: boolean) => void;
  setFollowing: (follow: boolean) => void;
}

/**
 * `wanted`: parameters of the lines to show; `opening`: initial position of the window; `last`: id of the last line;
 * `counted`: all lines are shown.
 */
export function useReading(path: string, wanted: Record<string, unknown>, opening: Target, last: number, counted: boolean): Reading {
  const key = JSON.stringify(wanted);
  const [held, setHeld] = useState<Stretch>(NOTHING);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(true);
  const [searched, setSearched] = useState(0);
  const [over, setOver] = useState(false);
  const [came, setCame] = useState(0);
  const [announced, setTold] = useState("");
  const [following, setFollowing] = useState(false);
  const [goal, setGoal] = useState<Reading["goal"]>(null);
  const now = useRef({ held, following, growing: 0, turn: 0, seen: 0, counted });
  now.current.held = held;
  now.current.following = following;
  now.current.counted = counted;
  const recent = useRef(new Recent());
  const source = useRef<Source>(null);

  const show = useCallback((next: Stretch) => {
    now.current.held = next;
    setHeld(next);
  }, []);

  /** Runs work that changes the window; its result is dropped if the window has moved elsewhere meanwhile. */
  const attempt = useCallback(async (work: (source: Source, isNew: () => boolean) => Promise<void>) => {
    const asked = source.current;
    if (!asked) return;
    const { turn } = now.current;
    const isNew = () => !asked.signal.aborted && turn === now.current.turn;
    setBusy(true);
    setTold("");
    try {
      await work(asked, isNew);
      if (isNew()) setError(null);
    } catch (failure) {
      if (isNew()) setError(failure);
    }
    if (isNew()) setBusy(false);
  }, []);

  /** Adds lines that have arrived by streaming but are not in the pages yet. */
  const completed = useCallback((lines: Line[], ended: boolean) => {
    const last = lines.at(-1)?.id ?? now.current.held.lines.at(-1)?.id ?? -1;
    const rest = ended ? recent.current.behind(last) : [];
    return { lines: [...lines, ...(rest ?? [])], ended: ended && rest !== null };
  }, []);

  const go = useCallback(
    (target: Target) => {
      now.current.turn += 1;
      void attempt(async (source, isNew) => {
        const opened = await windowAt(source, target);
        if (!isNew()) return;
        const { lines, ended } = completed(opened.stretch.lines, opened.stretch.atEnd);
        show({ lines, atStart: opened.stretch.atStart, atEnd: ended });
        const follow = target === "end";
        now.current.following = follow;
        setFollowing(follow);
        if (follow) setCame(0);
        setGoal({ id: opened.goal ?? lines.at(-1)?.id ?? 0, turn: now.current.turn });
      });
    },
    [attempt, completed, show],
  );

  const grow = useCallback(
    (back: boolean) => {
      const { held, growing, turn } = now.current;
      if (growing === turn || !held.lines.length || (back ? held.atStart : held.atEnd)) return;
      now.current.growing = turn;
      void attempt(async (source, isNew) => {
        const [first, last] = [held.lines[0]!.id, held.lines.at(-1)!.id];
        const page = await (back ? source.before({ beforeId: first }, PAGE) : source.behind({ afterId: last }, PAGE));
        if (!isNew()) return;
        if (back) return show(before(now.current.held, page.lines, page.ended));
        const { lines, ended } = completed(page.lines, page.ended);
        show(behind(now.current.held, lines, ended, now.current.counted));
        if (ended) setCame(0);
      }).finally(() => {
        if (now.current.growing === turn) now.current.growing = 0;
      });
    },
    [attempt, completed, show],
  );

  const take = useCallback(
    (lines: Line[]) => {
      const fresh = lines.filter((line) => line.id > now.current.seen).length;
      now.current.seen = Math.max(now.current.seen, lines.at(-1)?.id ?? 0);
      recent.current.put(lines);
      const { held, following } = now.current;
      if (following || (held.atEnd && !held.lines.length)) show(behind(held, lines, true, now.current.counted));
      else {
        setCame((count) => count + fresh);
        if (held.atEnd) show({ ...held, atEnd: false });
      }
    },
    [show],
  );

  // biome-ignore lint/correctness/useExhaustiveDependencies: `opening` and `last` count only when the request changes
  useEffect(() => {
    const stop = new AbortController();
    source.current = new Source(path, JSON.parse(key), stop.signal, setSearched);
    recent.current = new Recent();
    now.current.seen = last;
    show(NOTHING);
    setOver(false);
    setCame(0);
    go(opening);
    const endTail = tailed(source.current, last, take, setOver);
    return () => {
      endTail();
      stop.abort();
    };
  }, [path, key]);

  return {
    ...held,
    error,
    busy,
    searched,
    over,
    came,
    following,
    goal,
    announced,
    tell: setTold,
    tellSearched: setSearched,
    go,
    grow,
    setFollowing,
  };
}

async function windowAt(source: Source, target: Target): Promise<{ stretch: Stretch; goal: number | null }> {
  if (target === "end") {
    const page = await source.before({}, PAGE);
    return { stretch: { lines: page.lines, atStart: page.ended, atEnd: true }, goal: null };
  }
  if (target === "start") {
    const page = await source.behind({}, PAGE);
    return { stretch: { lines: page.lines, atStart: true, atEnd: page.ended }, goal: page.lines[0]?.id ?? null };
  }
  const id = await idOf(source, target);
  if (id === null) return windowAt(source, "end");
  const [earlier, later] = await Promise.all([source.before({ beforeId: id }, PAGE / 2), source.behind({ afterId: id - 1 }, PAGE)]);
  return { stretch: { lines: [...earlier.lines, ...later.lines], atStart: earlier.ended, atEnd: later.ended }, goal: id };
}

/** Id of the line meant; null if the log does not reach that far yet. */
async function idOf(source: Source, target: { id: number } | { number: number } | { at: string }): Promise<number | null> {
  if ("id" in target) return target.id;
  const place = "number" in target ? { fromNumber: Math.max(target.number, 1) } : { timestampAfter: target.at };
  return (await source.behind(place, 1)).lines[0]?.id ?? null;
}

/** Streams new lines to `take` in batches; reconnects after an interruption, until the log is over. */
function tailed(source: Source, last: number, take: (lines: Line[]) => void, setOver: (over: boolean) => void): () => void {
  let coming: Line[] = [];
  const flush = () => {
    if (coming.length) take(coming);
    coming = [];
  };
  const timer = setInterval(flush, FLUSH_MS);
  void (async () => {
    while (!source.signal.aborted) {
      try {
        for await (const lines of source.following(last)) {
          coming.push(...lines);
          last = lines.at(-1)?.id ?? last;
        }
        flush();
        return setOver(true);
      } catch (failure) {
        // A rejected request would be rejected again.
        if (failure instanceof ApiError && failure.status < 500) return;
        await new Promise((done) => setTimeout(done, AGAIN_MS));
      }
    }
  })();
  return () => clearInterval(timer);
}
