/** The trials beside the charts: the legend, and the place to choose trials. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDownUp, Eye, EyeOff, Layers } from "lucide-react";
import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useMemo, useRef } from "react";
import { Link, useNavigate } from "react-router";

import { Button, IconButton } from "../ui/button";
import { Search } from "../ui/field";
import { Menu, Popover } from "../ui/menu";
import { useRoving } from "../ui/roving";
import { State } from "../ui/state";
import { asks } from "./ask";
import type { Choice } from "./chosen";
import { SLOTS, slotColour } from "./colours";
import { digits } from "../parts/format";
import { tickText } from "./export";
import { light, lighted, onLit } from "./light";
import { useLink } from "./link";
import type { Known, Looks } from "./looks";
import { styled } from "./ramp";

/** A trial as the list shows it. */
export interface Listed extends Known {
  batches: number;
  /** The trial's experiment, if there are several. */
  of?: string;
}

const ORDERS = [
  ["", "best first"],
  ["id", "newest first"],
  ["batches", "most batches first"],
] as const;

type Row = { kind: "trial"; trial: Listed } | { kind: "head"; text: string };

function rowsOf(trials: Listed[], choice: Choice, order: string, coloured: boolean): Row[] {
  const sorted = [...trials];
  if (order === "id") sorted.sort((a, b) => b.id - a.id);
  if (order === "batches") sorted.sort((a, b) => b.batches - a.batches);
  const rows = (some: Listed[]) => some.map((trial): Row => ({ kind: "trial", trial }));
  const chosen = sorted.filter((trial) => choice.chosen.has(trial.id));
  const others = sorted.filter((trial) => !choice.chosen.has(trial.id));
  if (!others.length || !chosen.length) return rows(sorted);
  const text = `${others.length.toLocaleString("en")} ${others.length === 1 ? "other" : "others"}${coloured ? "" : ", in grey"}`;
  return [...rows(chosen), { kind: "head", text }, ...rows(others)];
}

const ROWS = { rows: "li", first: ".pick" };
const [ROW_PX, TALL_PX, HEAD_PX, BEYOND] = [27, 44, 26, 12];

export function TrialList({
  trials,
  metric,
  total,
  choice,
  looks,
  foot,
}: {
  /** Best first. */
  trials: Listed[];
  /** What their values are of. */
  metric: string;
  /** How many trials the search may have in total, if known. */
  total?: number;
  choice: Choice;
  looks: Looks;
  foot?: ReactNode;
}) {
  const { params, set } = useLink();
  const [find, order] = [params.get("tq") ?? "", params.get("to") ?? ""];
  const fitting = useMemo(() => trials.filter(asks(find)), [trials, find]);
  const rows = useMemo(() => rowsOf(fitting, choice, order, params.has("cb")), [fitting, choice, order, params]);
  const box = useRef<HTMLDivElement>(null);
  const tall = trials.some((trial) => trial.of);
  const window = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (at) => (rows[at]!.kind === "head" ? HEAD_PX : tall ? TALL_PX : ROW_PX),
    overscan: BEYOND,
  });
  useLitRow(box);
  useRoving(box, ROWS);
  const shown = fitting.length === trials.length ? (total ?? trials.length) : trials.length;
  return (
    <section className="card trial-list" aria-label="Trials">
      <header>
        <h2>Trials</h2>
        <span className="ink3 sm" role="status">
          {fitting.length === shown
            ? fitting.length.toLocaleString("en")
            : `${fitting.length.toLocaleString("en")} of ${shown.toLocaleString("en")}`}
        </span>
        <span className="r">
          <span className="ink3 sm cut" title={`${metric} at the best validation of each trial`}>
            {metric}
          </span>
          <Menu
            label="Order of trials"
            icon={<ArrowDownUp />}
            items={ORDERS.map(([id, name]) => ({ name, checked: order === id, act: () => set({ to: id }) }))}
          />
        </span>
      </header>
      <div className="find">
        <Search small label="Find trials" value={find} placeholder="hp.lr<1e-3 or an id" onChange={(tq) => set({ tq })} />
      </div>
      <div ref={box} className="rows" onKeyDown={walk} onPointerLeave={() => light(null)} role="group" aria-label="Trials of the charts">
        <ul style={{ height: window.getTotalSize() }}>
          {window.getVirtualItems().map(({ index, start, size }) => (
            <Place key={index} start={start} size={size} row={rows[index]!} choice={choice} looks={looks} />
          ))}
        </ul>
        {!rows.length && <p className="ink3 sm none">No trials match.</p>}
      </div>
      <Foot choice={choice}>{foot}</Foot>
    </section>
  );
}

/** Marks the row of the highlighted trial without a React render, since it changes with every pointer move. */
function useLitRow(box: RefObject<HTMLDivElement | null>) {
  useEffect(
    () =>
      onLit((trial) => {
        box.current?.querySelector("[data-lit]")?.removeAttribute("data-lit");
        if (trial !== null) box.current?.querySelector(`[data-trial="${trial}"]`)?.setAttribute("data-lit", "true");
      }),
    [box],
  );
}

/** `j` and `k` move from row to row; the arrow keys also move within a row. */
function walk(event: KeyboardEvent<HTMLElement>) {
  const by = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
  const now = (event.target as HTMLElement).closest("li");
  if (!by || !now || (event.target as HTMLElement).tagName === "INPUT") return;
  event.preventDefault();
  event.stopPropagation();
  let next = by > 0 ? now.nextElementSibling : now.previousElementSibling;
  if (next && !next.querySelector(".pick")) next = by > 0 ? next.nextElementSibling : next.previousElementSibling;
  next?.querySelector<HTMLElement>(".pick")?.focus();
}

interface PlaceProps {
  row: Row;
  start: number;
  size: number;
  choice: Choice;
  looks: Looks;
}

function Place({ row, start, size, choice, looks }: PlaceProps) {
  const style = { transform: `translateY(${start}px)`, height: size };
  if (row.kind === "head")
    return (
      <li className="off head" style={style}>
        {row.text}
      </li>
    );
  return <Entry trial={row.trial} style={style} choice={choice} look={looks.get(row.trial.id)?.colour ?? slotColour(undefined)} />;
}

function Entry({ trial, style, choice, look }: { trial: Listed; style: object; choice: Choice; look: string }) {
  const navigate = useNavigate();
  const chosen = choice.chosen.has(trial.id);
  const hidden = choice.hidden.has(trial.id);
  const place = `/experiments/${trial.experimentId}/trials/${trial.id}/overview`;
  const not = !chosen && choice.full ? `${SLOTS} trials selected, the most that colours can tell apart` : "";
  const press = (event: KeyboardEvent) => {
    if (event.key === " ") choice.hide(trial.id);
    else if (event.key === "Enter" && !event.shiftKey) navigate(place);
    else if (event.key === "x" && !not) choice.toggle(trial.id);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <li
      className={`${chosen ? "" : "off"} ${hidden ? "away" : ""}`}
      style={style}
      data-lit={lighted() === trial.id || undefined}
      data-trial={trial.id}
      onPointerEnter={() => light(trial.id)}
    >
      <Popover label={`Colour of trial ${trial.id}`} icon={<i className="sw" style={{ background: styled(look) }} />} kind="ghost" small>
        {(close) => <Colours trial={trial.id} choice={choice} onDone={close} />}
      </Popover>
      <Link to={place} className="m">
        {trial.id}
      </Link>
      <State state={trial.state} />
      <span className="ink3 sm of">{trial.of ?? tickText(trial.batches)}</span>
      <b>{trial.value === null ? "" : digits(trial.value)}</b>
      <button
        type="button"
        className="pick"
        aria-pressed={chosen}
        aria-label={`Choose trial ${trial.id}`}
        title={not || `${trial.of ? `${trial.of} · ` : ""}click to select, Space to show or hide, Enter to open`}
        disabled={Boolean(not)}
        onFocus={() => light(trial.id)}
        onBlur={() => light(null)}
        onClick={() => choice.toggle(trial.id)}
        onKeyDown={press}
      />
      <IconButton
        icon={hidden ? <EyeOff /> : <Eye />}
        label={`${hidden ? "Show" : "Hide"} trial ${trial.id}`}
        keys="Space"
        onClick={() => choice.hide(trial.id)}
      />
    </li>
  );
}

function Colours({ trial, choice, onDone }: { trial: number; choice: Choice; onDone: () => void }) {
  const slots = Array.from({ length: SLOTS }, (_, at) => at + 1);
  return (
    <div className="slots-of" role="group" aria-label="Colours">
      {slots.map((slot) => {
        const owner = [...choice.chosen].find(([, taken]) => taken === slot)?.[0];
        const whose = owner === trial ? "this trial" : owner ? `trial ${owner}, which gets the old colour` : "free";
        return (
          <button
            key={slot}
            type="button"
            aria-pressed={owner === trial}
            aria-label={`Colour ${slot}: ${whose}`}
            title={whose}
            disabled={!choice.chosen.has(trial) && (choice.full || Boolean(owner))}
            onClick={() => {
              choice.recolour(trial, slot);
              onDone();
            }}
          >
            <i className={`stroke ${slot > SLOTS / 2 ? "dashed" : ""}`} style={{ borderColor: styled(slotColour(slot)) }} />
          </button>
        );
      })}
    </div>
  );
}

function Foot({ choice, children }: { choice: Choice; children: ReactNode }) {
  const navigate = useNavigate();
  const ids = [...choice.chosen.keys()];
  return (
    <div className="foot">
      {children ?? (
        <Button
          small
          icon={<Layers />}
          not={ids.length > 1 ? undefined : "Select two or more trials"}
          onClick={() =>
            navigate(`/experiments/compare?t=${ids.join(",")}&c=${[...choice.chosen].map((entry) => entry.join(".")).join(",")}`)
          }
        >
          Compare {ids.length || ""}
        </Button>
      )}
      {choice.byItself ? (
        !children && <span className="ink3 xs">the best are chosen</span>
      ) : (
        <>
          <Button small kind="ghost" onClick={choice.clear} not={ids.length ? undefined : "No trials selected"}>
            Clear
          </Button>
          <Button small kind="ghost" onClick={choice.reset}>
            Best
          </Button>
        </>
      )}
    </div>
  );
}
