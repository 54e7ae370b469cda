/** The menu of one chart. */

import { FileDown, Link2, MoveVertical, Scissors, Table2, TrendingUp } from "lucide-react";
import { type FormEvent, useState } from "react";

import { Dialog, DialogFoot } from "../ui/dialog";
import { NumberField } from "../ui/field";
import { Menu } from "../ui/menu";
import { failed, toast } from "../ui/toast";
import { type Drawing, save, toCsv, toPng, toSvg } from "./export";
import type { Line } from "./lines";
import type { Own } from "./own";

interface Props {
  title: string;
  /** Display name of the metric. */
  called: string;
  log: boolean;
  own: Own;
  onChange: (change: Partial<Own>) => void;
  table: boolean;
  onTable: (table: boolean) => void;
  /** Null while nothing is drawn. */
  drawing: (() => Drawing) | null;
  lines: Line[];
  axis: string;
}

export function ChartMenu({ title, called, log, own, onChange, table, onTable, drawing, lines, axis }: Props) {
  const [asking, setAsking] = useState(false);
  const undrawn = drawing ? undefined : "nothing is drawn";
  const svg = () => toSvg(drawing!());
  const items = [
    { name: "Log scale", icon: <TrendingUp />, checked: log, act: () => onChange({ log: !log }) },
    { name: "Range of y", icon: <MoveVertical />, checked: own.range !== null, act: () => setAsking(true) },
    { name: "Clip outliers", icon: <Scissors />, checked: own.clip, act: () => onChange({ clip: !own.clip }) },
    { name: table ? "As chart" : "As table", icon: <Table2 />, act: () => onTable(!table) },
    null,
    {
      name: "Export as CSV",
      icon: <FileDown />,
      not: lines.length ? undefined : "nothing was reported",
      act: () => save(`${title}.csv`, new Blob([toCsv(lines, axis)], { type: "text/csv" })),
    },
    {
      name: "Export as SVG",
      icon: <FileDown />,
      not: undrawn,
      act: () => save(`${title}.svg`, new Blob([svg()], { type: "image/svg+xml" })),
    },
    {
      name: "Export as PNG",
      icon: <FileDown />,
      not: undrawn,
      act: () => void toPng(svg()).then((png) => save(`${title}.png`, png), failed),
    },
    null,
    { name: "Copy link to this chart", icon: <Link2 />, act: () => void copyLink(title) },
  ];
  return (
    <>
      <Menu label={`Options of ${called}`} items={items} />
      {asking && <Range title={called} range={own.range} onChange={(range) => onChange({ range })} onClose={() => setAsking(false)} />}
    </>
  );
}

async function copyLink(title: string) {
  const link = new URL(location.href);
  link.searchParams.set("full", title);
  try {
    await navigator.clipboard.writeText(String(link));
    toast({ text: "Link copied. It opens this chart full screen." });
  } catch (error) {
    failed(error, "The link could not be copied");
  }
}

function Range({
  title,
  range,
  onChange,
  onClose,
}: {
  title: string;
  range: Own["range"];
  onChange: (range: Own["range"]) => void;
  onClose: () => void;
}) {
  const [ends, setEnds] = useState(() => (range ?? ["", ""]).map(String));
  const [error, setError] = useState("");
  const take = (event: FormEvent) => {
    event.preventDefault();
    const [from, to] = ends.map(Number);
    if (!ends[0] && !ends[1]) onChange(null);
    else if (!ends[0] || !ends[1] || !(from! < to!)) return setError("Enter both ends, the lower one first.");
    else onChange([from!, to!]);
    onClose();
  };
  return (
    <Dialog title={`Range of ${title}`} onClose={onClose}>
      <form className="form" onSubmit={take}>
        <div className="two-up">
          <NumberField label="From" step="any" value={ends[0]} onChange={(from) => setEnds([from, ends[1]!])} error={error} />
          <NumberField
            label="To"
            step="any"
            value={ends[1]}
            onChange={(to) => setEnds([ends[0]!, to])}
            hint="Leave both empty to fit the values."
          />
        </div>
        <DialogFoot onClose={onClose}>Set range</DialogFoot>
      </form>
    </Dialog>
  );
}
