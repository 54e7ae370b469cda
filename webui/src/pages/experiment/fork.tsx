import { useEffect, useMemo, useRef, useState } from "react";
import { useNavigate } from "react-router";

import { useChange } from "../../api/data";
import type { Config, Experiment } from "../../api/types";
import { Failure } from "../../parts/basics";

/** A new experiment from this one's configuration and code; with `search`, one that looks for better hyperparameters. */
export function Fork({ one, search = false, onClose }: { one: Experiment; search?: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [config, setConfig] = useState(() => (search ? JSON.stringify(searching(one), null, 2) : one.originalConfig));
  const navigate = useNavigate();
  const fork = useChange((answer) => {
    onClose();
    navigate(`/experiments/${answer.experiment.id}/overview`);
  });
  useEffect(() => dialog.current?.showModal(), []);
  const title = search ? `Search hyperparameters of experiment ${one.id}` : `Fork experiment ${one.id}`;
  return (
    <dialog ref={dialog} onClose={onClose} className="wide-dialog" aria-labelledby="fork-title">
      <h2 id="fork-title">{title}</h2>
      {search && <Ranges config={config} onChange={setConfig} />}
      <label>
        Configuration
        <textarea rows={search ? 14 : 22} spellCheck={false} value={config} onChange={(event) => setConfig(event.target.value)} />
      </label>
      {fork.error ? <Failure error={fork.error} /> : null}
      <menu>
        <button type="button" onClick={onClose}>
          Close
        </button>
        <button
          type="button"
          className="main"
          disabled={fork.isPending}
          onClick={() => fork.mutate({ method: "POST", path: "experiments", body: { config, parentId: one.id, activate: true } })}
        >
          Submit
        </button>
      </menu>
    </dialog>
  );
}

/** The same configuration under an adaptive search; what is constant can be given a range. */
function searching(one: Experiment): Config {
  const config = structuredClone(one.config);
  const { metric, smaller_is_better, max_length } = config.searcher;
  config.searcher = { name: "adaptive_asha", metric, smaller_is_better, max_length, max_trials: 16 };
  config.name = `${one.name} (search)`;
  return config;
}

/** Numbers of the configuration, each with a box that makes a range of it: a tenth to ten times, or half to double. */
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
    ([, one]: [string, any]) => typeof (one?.val ?? one) === "number" || ["int", "double", "log"].includes(one?.type),
  );
  return (
    <div className="controls">
      {numbers.map(([name, one]: [string, any]) => (
        <label key={name}>
          <input type="checkbox" checked={Boolean(one?.type && one.type !== "const")} onChange={() => toggle(name, one)} /> search {name}
        </label>
      ))}
      <label>
        trials
        <input
          type="number"
          min={1}
          value={searcher.max_trials ?? 16}
          onChange={(event) => put({ ...parsed, searcher: { ...searcher, max_trials: Number(event.target.value) } })}
        />
      </label>
    </div>
  );
}

function middle(hparam: any): number {
  const value = (hparam.minval + hparam.maxval) / 2;
  if (hparam.type === "log") return hparam.base ** value;
  return hparam.type === "int" ? Math.round(value) : value;
}
