import { StepForward } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";

import { useChange } from "../../api/data";
import type { Experiment, Trial } from "../../api/types";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { NumberField, TextArea } from "../../ui/field";
import { Failure } from "../../ui/status";
import { asConfigured, changed, lengthOf, readChanges, wrongLength } from "./lengths";

/** Trains a single trial further: creates an experiment that starts from its latest checkpoint. */
export function Continue({ experiment, trial, onClose }: { experiment: Experiment; trial: Trial; onClose: () => void }) {
  const { count, unit } = lengthOf(experiment.config.searcher.max_length);
  const [until, setUntil] = useState(String(count * 2));
  const [text, setText] = useState("");
  const [tried, setTried] = useState(false);
  const navigate = useNavigate();
  const go = useChange((answer) => {
    onClose();
    navigate(`/experiments/${answer.experiment.id}/overview`);
  });
  const reached = !unit || unit === "batches" ? Math.max(count, trial.totalBatchesProcessed) : count;
  const wrong = wrongLength(until, reached);
  const { changes, error } = readChanges(text);
  const { made, unknown } = changed(experiment.config.hyperparameters ?? {}, changes);
  const badChange = error || (unknown.length ? `There is no hyperparameter ${unknown[0]}.` : "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (wrong || badChange) return;
    const config = structuredClone(experiment.config);
    config.searcher = { ...config.searcher, max_length: asConfigured({ count: Number(until), unit }), source_trial_id: trial.id };
    delete config.searcher.source_checkpoint_uuid;
    config.hyperparameters = made;
    config.name = `Continuation of trial ${trial.id}, experiment ${experiment.id}`;
    go.mutate({ method: "POST", path: "experiments", body: { config: JSON.stringify(config), parentId: experiment.id, activate: true } });
  };
  return (
    <Dialog
      title={`Continue trial ${trial.id}`}
      text={`A new experiment starts from its latest checkpoint. It has trained ${trial.totalBatchesProcessed.toLocaleString("en")} batches.`}
      onClose={onClose}
    >
      <form className="form" onSubmit={submit} noValidate>
        <NumberField
          label={`Train until${unit ? ` (${unit})` : ""}`}
          value={until}
          onChange={setUntil}
          min={1}
          hint="The total length, including what is already done."
          error={tried || until !== String(count * 2) ? wrong : ""}
        />
        <TextArea
          label="Change hyperparameters"
          value={text}
          onChange={setText}
          placeholder="optimizer.lr: 1.0e-4"
          hint="One per line, as name: value. Leave empty to keep all of them."
          error={text ? badChange : ""}
        />
        {go.error ? <Failure error={go.error} /> : null}
        <DialogFoot onClose={onClose} icon={<StepForward />} disabled={go.isPending}>
          Continue trial
        </DialogFoot>
      </form>
    </Dialog>
  );
}
