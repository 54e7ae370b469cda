import { GitFork } from "lucide-react";
import { type FormEvent, useMemo, useState } from "react";
import { useNavigate } from "react-router";

import { useChange } from "../../api/data";
import type { Config, Experiment } from "../../api/types";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { Check, NumberField, TextArea } from "../../ui/field";

const TRIALS = 16;

/**
 * Creates an experiment from this one's configuration and code; with `search`, one that searches for better
 * hyperparameters.
 */
export function Fork({ experiment, search = false, onClose }: { experiment: Experiment; search?: boolean; onClose: () => void }) {
  const [config, setConfig] = useState(() => (search ? JSON.stringify(searching(experiment), null, 2) : experiment.originalConfig));
  const navigate = useNavigate();
  const fork = useChange((answer) => {
    onClose();
    navigate(`/experiments/${answer.experiment.id}/overview`);
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (config.trim()) fork.mutate({ method: "POST", path: "experiments", body: { config, parentId: experiment.id, activate: true } });
  };
  const refused = fork.error instanceof Error ? fork.error.message : fork.error ? String(fork.error) : "";
  return (
    <Dialog
      wide
      title={search ? `Search hyperparameters of ${experiment.name}` : `Fork ${experiment.name}`}
      text="Creates a new experiment with the same code and the configuration below."
      onClose={onClose}
    >
      <form className="form" onSubmit={submit}>
        {search && <Ranges config={config} onChange={setConfig} />}
        <TextArea
          label="Configuration"
          rows={search ? 14 : 20}
          spellCheck={false}
          value={config}
          onChange={setConfig}
          error={config.trim() ? refused : "A configuration is needed."}
        />
        <DialogFoot onClose={onClose} icon={<GitFork />} disabled={fork.isPending}>
          {search ? "Start search" : "Fork"}
        </DialogFoot>
      </form>
    </Dialog>
  );
}

/** The same configuration with an adaptive search; constants can be turned into ranges. */
function searching(experiment: Experiment): Config {
  const config = structuredClone(experiment.config);
  const { metric, smaller_is_better, max_length } = config.searcher;
  config.searcher = { name: "adaptive_asha", metric, smaller_is_better, max_length, max_trials: TRIALS };
  config.name = `${experiment.name} (search)`;
  return config;
}

/**
 * Numbers of the configuration, each with a check box that makes it a range: a tenth to ten times, or half to double.
 */
function Ranges({ config, onChange }: { config: string; onChange: (text: string) => void }) {
  const parsed = useMemo<Config | null>(() => {
    try {
      return JSON.parse(config);
    } catch {
      return null;
    }
  }, [config]);
  const searcher = parsed?.searcher;
  if (!parsed || !searcher) return null;
  const put = (next: Config) => onChange(JSON.stringify(next, null, 2));
  const toggle = (name: string, hparam: any) => {
    const value = hparam?.val ?? hparam;
    const ranged = hparam?.type && hparam.type !== "const";
    const next = ranged
      ? { type: "const", val: middle(hparam) }
      : Number.isInteger(value)
        ? { type: "int", minval: Math.max(1, Math.floor(value / 2)), maxval: value * 2 }
        : { type: "log", base: 10, minval: Math.log10(value) - 1, maxval: Math.log10(value) + 1 };
    put({ ...parsed, hyperparameters: { ...parsed.hyperparameters, [name]: next } });
  };
  const numbers = Object.entries(parsed.hyperparameters ?? {}).filter(
    ([, range]: [string, any]) => typeof (range?.val ?? range) === "number" || ["int", "double", "log"].includes(range?.type),
  );
  return (
    <fieldset className="ranges">
      <legend className="lbl">Search over</legend>
      <div className="chips">
        {numbers.map(([name, range]: [string, any]) => (
          <Check key={name} label={name} checked={Boolean(range?.type && range.type !== "const")} onChange={() => toggle(name, range)} />
        ))}
      </div>
      <NumberField
        label="Trials"
        min={1}
        value={String(searcher.max_trials ?? TRIALS)}
        onChange={(count) => put({ ...parsed, searcher: { ...searcher, max_trials: Number(count) } })}
      />
    </fieldset>
  );
}

function middle(hparam: any): number {
  const value = (hparam.minval + hparam.maxval) / 2;
  if (hparam.type === "log") return hparam.base ** value;
  return hparam.type === "int" ? Math.round(value) : value;
}
