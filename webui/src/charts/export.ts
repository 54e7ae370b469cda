/** Exports of charts as files. */

import { harmless } from "../parts/file";
import { number } from "../parts/format";
import type { Extent, Line } from "./lines";
import { inked } from "./ramp";
import { scaleTo, spread, SvgPen, trace, traceBand } from "./trace";

const text = (value: unknown) => {
  const text = value === null || value === undefined ? "" : harmless(String(value));
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** All data that the chart was drawn from, one row per bucket. */
export function toCsv(lines: Line[], axis: string): string {
  const own = axis === "batches" ? [] : [axis];
  const rows = lines.flatMap((line) =>
    line.xs.map((x, at) => [
      line.trial,
      line.group,
      line.from.name,
      ...own.map(() => x),
      line.batches[at],
      line.from.last[at],
      line.low?.[at] ?? line.from.last[at],
      line.high?.[at] ?? line.from.last[at],
      line.from.mean?.[at] ?? line.from.last[at],
      line.from.counts?.[at] ?? (line.from.last[at] === null ? 0 : 1),
      line.gaps[at],
    ]),
  );
  const head = ["trial", "group", "metric", ...own, "batches", "last", "min", "max", "mean", "count", "non_finite"];
  return `${[head, ...rows].map((row) => row.map(text).join(",")).join("\n")}\n`;
}

export interface Drawing {
  title: string;
  axis: string;
  lines: Line[];
  extent: Extent;
  log: boolean;
  band: boolean;
  /** Ticks as shown on the page: value and text. */
  ticks: { x: [number, string][]; y: [number, string][] };
  colours: { ground: string; ink: string; soft: string; line: string };
}

const [WIDTH, HEIGHT] = [900, 460];
const BOX = { left: 76, right: WIDTH - 150, top: 44, bottom: HEIGHT - 52 };
const safe = (value: string) => value.replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`);

/** The chart as a stand-alone SVG document. */
export function toSvg(drawing: Drawing): string {
  const [toX, toY] = [scaleTo(drawing.extent.x, BOX.left, BOX.right), scaleTo(drawing.extent.y, BOX.bottom, BOX.top, drawing.log)];
  const { ground, ink, soft, line } = drawing.colours;
  const label = (x: number, y: number, value: string, more = "") => `<text x="${x}" y="${y}" ${more}>${safe(value)}</text>`;
  const ends = drawing.lines.map((each) => toY(each.ys.findLast((y) => y !== null) ?? drawing.extent.y[0]));
  const places = spread(ends, 14, BOX.top, BOX.bottom);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="${soft}">`,
    `<rect width="100%" height="100%" fill="${ground}"/>`,
    label(BOX.left, 26, drawing.title, `fill="${ink}" font-size="15" font-weight="600"`),
    `<clipPath id="box"><rect x="${BOX.left}" y="${BOX.top}" width="${BOX.right - BOX.left}" height="${BOX.bottom - BOX.top}"/></clipPath>`,
    ...drawing.ticks.x.map(
      ([at, value]) =>
        `<path d="M${toX(at)},${BOX.top}V${BOX.bottom}" stroke="${line}"/>${label(toX(at), BOX.bottom + 18, value, 'text-anchor="middle"')}`,
    ),
    ...drawing.ticks.y.map(
      ([at, value]) =>
        `<path d="M${BOX.left},${toY(at)}H${BOX.right}" stroke="${line}"/>${label(BOX.left - 8, toY(at) + 4, value, 'text-anchor="end"')}`,
    ),
    label((BOX.left + BOX.right) / 2, HEIGHT - 12, drawing.axis, 'text-anchor="middle"'),
    `<g clip-path="url(#box)" fill="none">`,
    ...drawing.lines.flatMap((each) => strokes(each, drawing.band, toX, toY)),
    "</g>",
    ...drawing.lines.map((each, at) => label(BOX.right + 8, places[at]! + 4, each.label, `fill="${inked(each.colour)}"`)),
    "</svg>",
  ].join("\n");
}

function strokes(line: Line, band: boolean, toX: (x: number) => number, toY: (y: number) => number): string[] {
  const parts: string[] = [];
  const area = new SvgPen();
  if (band) traceBand(area, line, toX, toY);
  if (String(area)) parts.push(`<path d="${area}" fill="${inked(line.colour)}" fill-opacity="0.18"/>`);
  const add = (ys: (number | null)[], more: string) => {
    const pen = new SvgPen();
    trace(pen, line.xs, ys, toX, toY);
    parts.push(`<path d="${pen}" stroke="${inked(line.colour)}" ${more}/>`);
  };
  if (line.pale) add(line.pale, 'stroke-opacity="0.3"');
  add(line.ys, `stroke-width="1.6"${line.dash.length ? ` stroke-dasharray="${line.dash.join(" ")}"` : ""}`);
  return parts;
}

const SHORT: [number, string][] = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];
/** An axis value as text: 188k, 0.86, 5e-3. */
export function tickText(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e12 || (size > 0 && size < 1e-3)) return Number(value.toPrecision(3)).toExponential().replace("e+", "e");
  const unit = SHORT.find(([from]) => size >= from);
  return unit && (size >= 1e4 || value % 1000 === 0 || size >= 1e3) ? `${number(value / unit[0], 4)}${unit[1]}` : number(value, 4);
}

export function save(name: string, content: Blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Renders a drawing as a PNG at twice the resolution of the page. */
export async function toPng(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * WIDTH, 2 * HEIGHT];
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob((blob) => done(blob!), "image/png"));
}
