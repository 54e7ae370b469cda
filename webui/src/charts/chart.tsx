/** A chart as a card: title, pin, full screen and menu, the drawing, and its legend. */

import { Maximize2, Minimize2, Pin, PinOff } from "lucide-react";
import { type ReactNode, useCallback, useMemo, useRef, useState } from "react";

import { Button, IconButton } from "../ui/button";
import { useKey } from "../ui/keys";
import { useRoving } from "../ui/roving";
import { Foot } from "./foot";
import { useFull } from "./full";
import { axisName, clipped, type Extent, extent, type Line } from "./lines";
import { ChartMenu } from "./menu";
import { useOwn, usePins } from "./own";
import { type Mark, Plot, type Ticks } from "./plot";
import { Picked, type Spot } from "./point";
import type { Rule } from "./rules";
import { Loading } from "../ui/status";
import { css } from "./theme";
import { pointerOf, Tip } from "./tip";
import { PointTable } from "./values";

export interface ChartProps {
  /** Name of the metric; settings of this chart are stored under it. */
  title: string;
  /** Display name, if it differs from `title`. */
  called?: string;
  /** Small text beside the title: the metric's groups. */
  note?: ReactNode;
  lines: Line[];
  axis: string;
  log?: boolean;
  band?: boolean;
  marks?: Mark[];
  rules?: Rule[];
  height?: number;
  /** Whether less is better; null if unknown. */
  smaller?: boolean | null;
  /** The drawing does not show the requested data yet. */
  busy?: boolean;
  zoom: [number, number] | null;
  onZoom: (range: [number, number] | null) => void;
  onOpen?: (trial: number) => void;
  /** Path of a trial's page. If given, a click on a point leads to the trial's log. */
  place?: (trial: number) => string;
  /** Shown below the drawing instead of the names of the lines. */
  below?: ReactNode;
}

const FULL_CHROME_PX = 150;
const USUAL_PX = 190;

export function Chart(props: ChartProps) {
  const {
    title,
    called = title,
    note,
    lines,
    axis,
    band = true,
    marks = [],
    rules,
    busy = false,
    zoom,
    onZoom,
    onOpen,
    place,
    below,
  } = props;
  const [own, change] = useOwn(title);
  const [full, setFull] = useFull(title);
  const { pinned, pin } = usePins();
  const [asTable, setAsTable] = useState(false);
  const [cursor, setCursor] = useState<number | null>(null);
  const pointer = useMemo(pointerOf, []);
  const [picked, setPicked] = useState<Spot | null>(null);
  const tools = useRef<HTMLSpanElement>(null);
  useRoving(tools);
  const ticks = useRef<() => Ticks>(() => ({ x: [], y: [] }));
  const log = own.log ?? props.log ?? false;
  const span = useSpan(lines, log, band, zoom, own.clip, own.range);
  const height = full ? Math.max(USUAL_PX, innerHeight - FULL_CHROME_PX) : (props.height ?? USUAL_PX);
  const drawing = useCallback(
    () => ({
      title,
      axis: axisName(axis),
      lines,
      extent: span!,
      log,
      band,
      ticks: ticks.current(),
      colours: { ground: css("--surface"), ink: css("--ink"), soft: css("--ink-3"), line: css("--grid") },
    }),
    [title, axis, lines, span, log, band],
  );
  const isPinned = pinned.includes(title);
  // With a single trial, the legend shows the values of its groups; with several trials, the list beside the charts
  // does.
  const few = lines.length > 0 && new Set(lines.map((line) => line.trial)).size === 1;
  return (
    <figure className={`card chart ${full ? "full" : ""}`} aria-label={called} aria-busy={busy} data-chart={title}>
      <header>
        <h2 title={title}>{called}</h2>
        {note && <span className="said">{note}</span>}
        <span ref={tools} className="r" role="toolbar" aria-label={`Tools of ${called}`}>
          {zoom && (
            <Button kind="ghost" small keys="Shift Z" onClick={() => onZoom(null)}>
              Whole range
            </Button>
          )}
          <IconButton icon={isPinned ? <PinOff /> : <Pin />} label={`${isPinned ? "Unpin" : "Pin"} ${called}`} onClick={() => pin(title)} />
          <IconButton
            icon={full ? <Minimize2 /> : <Maximize2 />}
            label={full ? "Leave full screen" : `Full screen of ${called}`}
            keys={full ? "Esc" : "Z"}
            action="full"
            onClick={() => setFull(!full)}
          />
          <ChartMenu
            title={title}
            called={called}
            log={log}
            own={own}
            onChange={change}
            table={asTable}
            onTable={setAsTable}
            drawing={span && !asTable ? drawing : null}
            lines={lines}
            axis={axisName(axis)}
          />
        </span>
      </header>
      {asTable ? (
        <PointTable axis={axis} lines={lines} place={place} />
      ) : span ? (
        <div className="drawn">
          <Plot
            lines={lines}
            extent={span}
            axis={axis}
            log={log}
            band={band}
            marks={marks}
            rules={rules}
            height={height}
            ticks={ticks}
            name={`${called} over ${axisName(axis)}; the same as text: As table, in its menu`}
            onCursor={few ? setCursor : NOBODY}
            onPointer={pointer.put}
            isZoomed={Boolean(zoom)}
            onZoom={onZoom}
            onOpen={onOpen}
            onPick={place && setPicked}
          />
          <Tip pointer={pointer} lines={lines} axis={axis} smaller={props.smaller ?? null} />
        </div>
      ) : (
        <div style={busy ? { height, overflow: "hidden" } : { minHeight: height }}>
          {busy ? (
            <Loading shape="chart" />
          ) : (
            <p className="void ink2">{zoom ? "Nothing was reported in this range." : `No point has ${axisName(axis)} yet.`}</p>
          )}
        </div>
      )}
      {picked && place && !asTable && <Picked spot={picked} axis={axis} place={place} onClose={() => setPicked(null)} />}
      {!asTable && <Foot lines={lines} axis={axis} cursor={cursor} values={few} clip={own.clip} below={below} />}
    </figure>
  );
}

const NOBODY = () => {};

/** Range of the axes: the zoom of the page, within the settings of this chart. */
function useSpan(lines: Line[], log: boolean, band: boolean, zoom: [number, number] | null, clip: boolean, range: [number, number] | null) {
  return useMemo((): Extent | null => {
    const whole = extent(lines, log, band);
    if (!whole) return null;
    const y = range && (!log || range[0] > 0) ? range : (clip && clipped(lines, log)) || whole.y;
    return { x: zoom ?? whole.x, y };
  }, [lines, log, band, zoom, clip, range]);
}

/** `z` toggles full screen for the chart under the pointer or in focus; `Shift z` shows the whole range. */
export function useChartKeys(onWhole: () => void) {
  const press = (only: boolean) => () => {
    const whole = document.querySelector(".chart.full");
    const here = whole ?? (only ? null : (document.querySelector(".chart:hover") ?? document.activeElement?.closest(".chart")));
    here?.querySelector<HTMLElement>('[data-action="full"]')?.click();
  };
  useKey({ z: press(false), Z: onWhole, Escape: press(true) });
}
