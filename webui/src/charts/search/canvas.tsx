/** A drawing with as many marks as there are trials, and one above it for the one that is lit. */

import { type PointerEvent, useEffect, useRef } from "react";

import { onTheme } from "../theme";

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
  /** Drawn above, again whenever it changes. */
  above?: (frame: Frame) => void;
  faint?: boolean;
  onMove?: (where: Where) => void;
  onLeave?: () => void;
  onDown?: (where: Where) => void;
  onUp?: (where: Where) => void;
  cursor?: string;
}

export function Canvas({ name, height, draw, above, faint, onMove, onLeave, onDown, onUp, cursor }: CanvasProps) {
  const [below, top] = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)];
  useDrawing(below, height, draw);
  useDrawing(top, height, above);
  const where = (act?: (where: Where) => void) => (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    act?.({ x: event.clientX - box.left, y: event.clientY - box.top, width: box.width, height: box.height, event });
  };
  return (
    <div
      className="drawing" role="img" aria-label={name} style={{ height, cursor }}
      onPointerMove={where(onMove)} onPointerLeave={onLeave} onPointerDown={where(onDown)} onPointerUp={where(onUp)}
    >
      <canvas ref={below} style={{ opacity: faint ? 0.3 : 1 }} />
      <canvas ref={top} />
    </div>
  );
}

function useDrawing(canvas: { current: HTMLCanvasElement | null }, height: number, draw?: (frame: Frame) => void) {
  const now = useRef(draw);
  now.current = draw;
  const seen = useRef(0);
  useEffect(() => paint(canvas.current!, height, now.current), [canvas, height, draw]);
  useEffect(() => {
    const again = () => paint(canvas.current!, height, now.current);
    const size = new ResizeObserver(([entry]) => {
      const width = entry!.contentRect.width;
      if (width !== seen.current) again();
      seen.current = width;
    });
    seen.current = canvas.current!.clientWidth;
    size.observe(canvas.current!);
    const stop = onTheme(again);
    return () => {
      size.disconnect();
      stop();
    };
  }, [canvas, height]);
}

function paint(element: HTMLCanvasElement, height: number, draw?: (frame: Frame) => void) {
  const width = element.clientWidth;
  const ratio = devicePixelRatio;
  [element.width, element.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const ctx = element.getContext("2d")!;
  ctx.scale(ratio, ratio);
  if (width) draw?.({ ctx, width, height });
}

const [BEST, MIDDLE, WORST] = [[47, 111, 222], [150, 110, 150], [217, 113, 28]] as const;
/** From blue, the best, to orange, the worst: told apart with any common colour blindness, and seen on light and dark. */
export function ramp(share: number): string {
  const clipped = Math.min(1, Math.max(0, share));
  const [from, to, part] = clipped < 0.5 ? [BEST, MIDDLE, clipped * 2] : [MIDDLE, WORST, clipped * 2 - 1];
  return `rgb(${from.map((one, at) => Math.round(one + (to[at]! - one) * part)).join(",")})`;
}

/** Completed: a disk. Stopped by the search: a ring. Failed: a cross. */
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
