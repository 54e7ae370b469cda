/** Keyboard access to the axes: which are shown, in which order, and which range of values selects trials. */

import { ArrowLeft, ArrowRight } from "lucide-react";

import { number } from "../../parts/format";
import { Button, IconButton } from "../../ui/button";
import { Check } from "../../ui/field";
import { type Axis, type Brush, onAxis } from "./axes";

export function AxisControls({
  all,
  hidden,
  axes,
  brushes,
  onHide,
  onMove,
  onBrush,
}: {
  all: string[];
  hidden: Set<string>;
  axes: Axis[];
  brushes: Brush[];
  onHide: (name: string, hide: boolean) => void;
  onMove: (name: string, to: number) => void;
  onBrush: (brushes: Brush[]) => void;
}) {
  const change = (axis: Axis, end: "from" | "to", text: string) => {
    const before = brushes.find((brush) => brush.name === axis.name) ?? { name: axis.name, from: axis.low, to: axis.high };
    if (text !== "" && Number.isFinite(Number(text)))
      onBrush([...brushes.filter((brush) => brush.name !== axis.name), { ...before, [end]: Number(text) }]);
  };
  return (
    <div className="axes-of" tabIndex={0}>
      <table aria-label="Axes">
        <thead>
          <tr>
            <th>Axis</th>
            <th>Order</th>
            <th className="num">From</th>
            <th className="num">To</th>
            <th>
              <span className="vh">Range</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {[...axes.map((axis) => axis.name), ...all.filter((name) => hidden.has(name))].map((name) => {
            const at = axes.findIndex((axis) => axis.name === name);
            const axis = axes[at];
            const brush = brushes.find((axis) => axis.name === name);
            const end = (side: "from" | "to") =>
              axis &&
              !axis.kinds && (
                <input
                  className="input"
                  type="number"
                  step="any"
                  aria-label={`${name} ${side}`}
                  value={brush?.[side] ?? ""}
                  placeholder={number(side === "from" ? axis.low : axis.high, 4)}
                  onChange={(event) => change(axis, side, event.target.value)}
                />
              );
            return (
              <tr key={name}>
                <td>
                  <Check label={name} checked={!hidden.has(name)} onChange={(on) => onHide(name, !on)} />
                </td>
                <td>
                  {axis && (
                    <span className="nowrap">
                      <IconButton
                        icon={<ArrowLeft />}
                        label={`${name} to the left`}
                        disabled={at === 0}
                        onClick={() => onMove(name, at - 1)}
                      />
                      <IconButton
                        icon={<ArrowRight />}
                        label={`${name} to the right`}
                        disabled={at === axes.length - 1}
                        onClick={() => onMove(name, at + 1)}
                      />
                    </span>
                  )}
                </td>
                <td className="num">
                  {axis?.kinds ? (
                    <Kinds
                      axis={axis}
                      brush={brush}
                      onChange={(axis) => onBrush([...brushes.filter((each) => each.name !== name), ...(axis ? [axis] : [])])}
                    />
                  ) : (
                    end("from")
                  )}
                </td>
                <td className="num">{end("to")}</td>
                <td>
                  {brush && (
                    <Button small kind="ghost" onClick={() => onBrush(brushes.filter((axis) => axis.name !== name))}>
                      All
                    </Button>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Kinds({ axis, brush, onChange }: { axis: Axis; brush?: Brush; onChange: (brush: Brush | null) => void }) {
  const value = brush ? axis.kinds![Math.round((brush.from + brush.to) / 2)] : "";
  const pick = (kind: string) => {
    const at = onAxis(axis, JSON.parse(kind || "null"));
    onChange(kind === "" || at === null ? null : { name: axis.name, from: at, to: at });
  };
  return (
    <select className="sel s" aria-label={`${axis.name} is`} value={value} onChange={(event) => pick(event.target.value)}>
      <option value="">any</option>
      {axis.kinds!.map((kind) => (
        <option key={kind} value={kind}>
          {kind}
        </option>
      ))}
    </select>
  );
}
