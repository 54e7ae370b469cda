/** A canvas for thousands of marks, with a second canvas above it for the highlighted one. */

import { type PointerEvent, useCallback, useEffect, useLayoutEffect, useRef } from "react";

import { lighted, onLit } from "../light";
import { onTheme } from "../theme";
import { watch } from "../visible";

export interface Frame {
  ctx: CanvasRenderingContext2D;
  width: number;
  height: number;
}
export interface Where {
  x: number;
  y: number;
  width: number;
  height: number;
  event: PointerEvent;
}
export interface CanvasProps {
  name: string;
  height: number;
  draw: (frame: Frame) => void;
  /** Draws above the rest; runs whenever another trial is highlighted or the function changes. */
  above?: (frame: Frame, lit: number | null) => void;
  /** Whether the rest fades while a trial is highlighted. */
  faint?: (lit: number | null) => boolean;
  onMove?: (where: Where) => void;
  onLeave?: () => void;
  onDown?: (where: Where) => void;
  onUp?: (where: Where) => void;
  cursor?: string | ((lit: number | null) => string);
}

export function Canvas({ name, height, draw, above, faint, onMove, onLeave, onDown, onUp, cursor }: CanvasProps) {
  const box = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLCanvasElement>(null);
  const top = useRef<HTMLCanvasElement>(null);
  const now = useRef({ draw, above, faint, cursor, width: 0, seen: false });
  Object.assign(now.current, { draw, above, faint, cursor });

  // The highlight changes with every pointer move, so it is drawn without React and without a layout, and only if the
  // canvas is visible.
  const shine = useCallback(() => {
    const { above, faint, cursor, width, seen } = now.current;
    if (!seen) return;
    const lit = lighted();
    paint(top.current!, width, height, above && ((frame) => above(frame, lit)));
    restyle(below.current!, "opacity", faint?.(lit) ? "0.3" : "1");
    restyle(box.current!, "cursor", typeof cursor === "function" ? cursor(lit) : (cursor ?? ""));
  }, [height]);

  // In the layout phase, because React takes the canvases out before the passive effects end: an observer that reports in
  // between would draw on nothing.
  useLayoutEffect(() => {
    const again = () => {
      paint(below.current!, now.current.width, height, now.current.draw);
      shine();
    };
    const resize = (width: number) => {
      if (width === now.current.width) return;
      now.current.width = width;
      again();
    };
    resize(box.current!.clientWidth);
    const size = new ResizeObserver(([entry]) => resize(entry!.contentRect.width));
    size.observe(box.current!);
    const look = (seen: boolean) => {
      now.current.seen = seen;
      shine();
    };
    const stops = [onTheme(again), onLit(shine), watch(box.current!, look), () => size.disconnect()];
    return () => stops.forEach((stop) => stop());
  }, [height, shine]);
  useEffect(() => paint(below.current!, now.current.width, height, draw), [height, draw]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shine` reads these from `now`
  useEffect(shine, [shine, above, faint, cursor]);

  const where = (act?: (where: Where) => void) => (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    act?.({ x: event.clientX - box.left, y: event.clientY - box.top, width: box.width, height: box.height, event });
  };
  return (
    <div
      ref={box}
      className="drawing"
      role="img"
      aria-label={name}
      style={{ height }}
      onPointerMove={where(onMove)}
      onPointerLeave={onLeave}
      onPointerDown={where(onDown)}
      onPointerUp={where(onUp)}
    >
      <canvas ref={below} />
      <canvas ref={top} />
    </div>
  );
}

function restyle({ style }: HTMLElement, name: "opacity" | "cursor", value: string) {
  if (style[name] !== value) style[name] = value;
}

function paint(element: HTMLCanvasElement, width: number, height: number, draw?: (frame: Frame) => void) {
  const ratio = devicePixelRatio;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  const ctx = element.getContext("2d")!;
  // Setting a canvas's size, even to the same value, reallocates its memory and forces a layout.
  if (element.width === wide && element.height === high) ctx.reset();
  else [element.width, element.height] = [wide, high];
  ctx.scale(ratio, ratio);
  if (width) draw?.({ ctx, width, height });
}

/** A disk for a completed trial, a ring for one that the search stopped, a cross for a failed one. */
export function mark(ctx: CanvasRenderingContext2D, x: number, y: number, size: number, tint: string, ending: string) {
  ctx.beginPath();
  ctx.strokeStyle = ctx.fillStyle = tint;
  ctx.lineWidth = 1.6;
  if (ending === "failed") {
    ctx.moveTo(x - size, y - size);
    ctx.lineTo(x + size, y + size);
    ctx.moveTo(x + size, y - size);
    ctx.lineTo(x - size, y + size);
    ctx.stroke();
    return;
  }
  ctx.arc(x, y, size, 0, 7);
  if (ending === "stopped") ctx.stroke();
  else ctx.fill();
}
