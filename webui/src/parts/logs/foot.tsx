/** Below the lines: the position in the log, details of the selected line, and the equivalent command. */

import { Copy, Link2, UnfoldVertical, WholeWord } from "lucide-react";

import { IconButton } from "../../ui/button";
import { Copyable } from "../../ui/text";
import { commandLine, type Filters, isFiltered } from "./filters";
import type { View } from "./list";
import type { Reading } from "./reading";
import type { Summary } from "./source";
import type { Line } from "./window";
import { many } from "../format";

interface Props {
  reading: Reading;
  summary: Summary;
  view: View;
  filters: Filters;
  command: string;
  line?: Line;
  onContext?: () => void;
  onCopy: () => void;
  onWhole: () => void;
}

const count = (value: number) => value.toLocaleString("en");

export function Foot({ reading, summary, view, filters, command, line, onContext, onCopy, onWhole }: Props) {
  return (
    <div className="logfoot">
      <span className="seen tn">{placed(summary, view)}</span>
      <span role="status" className="cut">
        {position(reading, summary, isFiltered(filters))}
      </span>
      {line && <Chosen line={line} onContext={onContext} onCopy={onCopy} onWhole={onWhole} />}
      <span className="sp" />
      <Copyable text={commandLine(command, filters)} />
    </div>
  );
}

function placed(summary: Summary, { first, last }: View): string {
  const end = Math.max(summary.lastNumber, last);
  return first && last ? `Lines ${count(first)} to ${count(last)} of ${count(end)}` : many(end, "line");
}

function position(reading: Reading, summary: Summary, filtered: boolean): string {
  if (reading.searched) return `searched up to line ${count(reading.searched)} of ${count(summary.lastNumber)}`;
  if (reading.announced) return reading.announced;
  const fit = filtered ? `${many(reading.lines.length, "matching line")} loaded,  ` : "";
  return fit + (reading.over ? "complete" : reading.following ? "following" : "not following");
}

function Chosen({ line, onContext, onCopy, onWhole }: Pick<Props, "onContext" | "onCopy" | "onWhole"> & { line: Line }) {
  const facts = [
    line.number ? `line ${count(line.number)}` : "",
    line.rankId === null ? "" : `rank ${line.rankId}`,
    line.agentId,
    line.allocationId && `run ${line.allocationId}`,
    `${line.source}, ${line.stdtype}`,
  ].filter(Boolean);
  return (
    <span className="chosen-line" role="group" aria-label="Selected line">
      <span className="cut" title={[line.timestamp, ...facts].join(" · ")}>
        {facts.join(" · ")}
      </span>
      <IconButton icon={<Copy />} label="Copy line" onClick={onCopy} />
      <IconButton icon={<Link2 />} label="Copy link" onClick={() => void navigator.clipboard?.writeText(location.href)} />
      {onContext && <IconButton icon={<UnfoldVertical />} label="Show surrounding lines" onClick={onContext} />}
      {line.length !== undefined && <IconButton icon={<WholeWord />} label="Show the whole line" onClick={onWhole} />}
    </span>
  );
}
