/** Leads from a point of a curve to the trial's log at that time. */

import { X } from "lucide-react";
import { useState } from "react";
import { useNavigate } from "react-router";

import { get, query } from "../api/client";
import { IconButton } from "../ui/button";
import { Failure } from "../ui/status";
import { number } from "../parts/format";
import { axisName, type Line, xText } from "./lines";

/** A point of a line: the last one of its bucket. */
export interface Spot {
  line: Line;
  at: number;
}

interface Found {
  trials: { metrics: { data: { time: string }[] }[] }[];
}

/** When the point was reported, as an API timestamp; null if the time is no longer stored. */
async function timeOf({ line, at }: Spot): Promise<string | null> {
  const { trialId, group, name } = line.from;
  const batches = line.batches[at];
  const asked = { trialIds: trialId, metricNames: name, group, startBatches: batches, endBatches: batches, maxDatapoints: 1 };
  const point = await get<Found>(`trials/time-series${query(asked)}`);
  return point.trials[0]?.metrics.flatMap((metric) => metric.data)[0]?.time ?? null;
}

export function ToLog({ spot, place, text = "log at this time" }: { spot: Spot; place: (trial: number) => string; text?: string }) {
  const navigate = useNavigate();
  const [state, setState] = useState<{ busy?: boolean; gone?: boolean; error?: unknown }>({});
  const go = async () => {
    setState({ busy: true });
    try {
      const time = await timeOf(spot);
      if (time) navigate(`${place(spot.line.trial)}/logs?at=${encodeURIComponent(time)}`);
      else setState({ gone: true });
    } catch (error) {
      setState({ error });
    }
  };
  return (
    <>
      <button type="button" className="textlink" aria-label="log at this time" disabled={state.busy} onClick={() => void go()}>
        {text}
      </button>
      {state.gone && <span role="alert">The report time is no longer stored.</span>}
      {state.error ? <Failure error={state.error} /> : null}
    </>
  );
}

/** Details of the point that was clicked. */
export function Picked({
  spot,
  axis,
  place,
  onClose,
}: {
  spot: Spot;
  axis: string;
  place: (trial: number) => string;
  onClose: () => void;
}) {
  const { line, at } = spot;
  return (
    <div className="picked" role="status">
      <span>
        {line.label} · {axisName(axis)} {xText(axis, line.xs[at]!)}
        {axis === "batches" ? "" : ` · ${number(line.batches[at])} batches`} · <strong>{number(line.from.last[at], 8)}</strong>
      </span>
      <ToLog key={`${line.key} ${at}`} spot={spot} place={place} />
      <IconButton icon={<X />} label="Close" onClick={onClose} />
    </div>
  );
}
