/** The trials of an experiment as a table. */

import { Layers, Save, SquareTerminal, X } from "lucide-react";
import { useMemo, useState } from "react";
import { useNavigate } from "react-router";

import { useChange } from "../../api/data";
import { useRights } from "../../api/rights";
import type { Experiment, Trial } from "../../api/types";
import { asks } from "../../charts/ask";
import { useChosen } from "../../charts/chosen";
import { light } from "../../charts/light";
import { useLink } from "../../charts/link";
import { count, isOver, many, stateName } from "../../parts/format";
import { Button } from "../../ui/button";
import { ask } from "../../ui/dialog";
import { Search, Select } from "../../ui/field";
import { useKey } from "../../ui/keys";
import type { MenuItems } from "../../ui/menu";
import { stateWord } from "../../ui/state";
import { Empty } from "../../ui/status";
import { ColumnPicker, type ColumnView, type Sort, Table, useKeptView } from "../../ui/table";
import { ordered } from "../../ui/table/order";
import { failed, toast } from "../../ui/toast";
import { comparePage, MOST_BESIDE } from "../comparing/beside";
import { CompareDrawer } from "../comparing/drawer";
import { columnsOf, hyperparametersOf, shownState } from "./columns";
import { useRungs } from "./decided";
import { listed } from "./listed";

const STORE = "trials";
/** Returns the same array as long as the experiment is the same. */
const useTopics = ({ id }: Experiment) => useMemo(() => [`experiment.${id}`], [id]);

interface Choosing {
  selected?: ReadonlySet<number>;
  onSelect?: (ids: Set<number | string>) => void;
  view?: ColumnView;
}

export function TrialTable({ experiment, trials, ...choosing }: { experiment: Experiment; trials: Trial[] } & Choosing) {
  const { decided } = useRungs(experiment, useTopics(experiment));
  const { params, set } = useLink();
  const [sorted, direction] = (params.get("so") ?? "").split("..");
  const ranked = useMemo(() => trials.map((trial) => trial.id), [trials]);
  const { chosen } = useChosen(experiment.id, ranked);
  const names = useMemo(() => hyperparametersOf(trials), [trials]);
  const key = JSON.stringify(names);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the columns depend on these fields of `experiment` alone
  const columns = useMemo(
    () => columnsOf({ experiment, names, decided, chosen }),
    [experiment.id, experiment.searcherMetric, key, decided, chosen],
  );
  const sorts = useMemo((): Sort[] => (sorted ? [[sorted, direction === "desc"]] : []), [sorted, direction]);
  const rows = useMemo(() => ordered(trials, columns, sorts), [trials, columns, sorts]);
  const actions = useTrialActions(experiment);
  return (
    <Table
      name="Trials"
      rows={rows}
      id={(trial) => trial.id}
      called={(trial) => `trial ${trial.id}`}
      columns={columns}
      sorts={sorts}
      onSort={([first]) => set({ so: first ? `${first[0]}..${first[1] ? "desc" : "asc"}` : "" })}
      actions={actions}
      store={STORE}
      onPoint={(trial) => light(trial?.id ?? null)}
      {...choosing}
    />
  );
}

function useTrialActions(of: Experiment): (trial: Trial) => MenuItems {
  const change = useChange();
  const rights = useRights();
  const kill = async (trial: Trial) => {
    const yes = await ask({
      title: `Kill trial ${trial.id}?`,
      text: "It stops immediately. Work since its last checkpoint is lost. The experiment continues.",
      verb: "Kill",
      danger: true,
    });
    if (!yes) return;
    await change
      .mutateAsync({ method: "POST", path: `trials/${trial.id}/kill` })
      .then(() => toast({ text: `Killed trial ${trial.id}` }), failed);
  };
  return (trial) => {
    const place = `/experiments/${trial.experimentId}/trials/${trial.id}`;
    return [
      { name: "Open log", icon: <SquareTerminal />, to: `${place}/logs` },
      { name: "Checkpoints", icon: <Save />, to: `${place}/checkpoints` },
      null,
      {
        name: "Kill",
        icon: <X />,
        danger: true,
        not: isOver(trial.state) ? "has ended" : rights("control", of),
        act: () => void kill(trial),
      },
    ];
  };
}

export function Trials({ experiment, trials, topics }: { experiment: Experiment; trials: Trial[]; topics: string[] }) {
  const { params, set } = useLink();
  const navigate = useNavigate();
  const { decided } = useRungs(experiment, topics);
  const [state, find] = [params.get("st") ?? "", params.get("q") ?? ""];
  const chosen = useMemo(() => new Set((params.get("t") ?? "").split(",").map(Number).filter(Boolean)), [params]);
  const fitting = useMemo(() => {
    const fits = asks(find);
    const words = find.toLowerCase();
    return trials.filter(
      (trial) =>
        (!state || stateName(shownState(trial, decided)) === state) &&
        (fits(listed(trial, experiment, false)) || (decided.get(trial.id)?.text ?? "").toLowerCase().includes(words)),
    );
  }, [trials, experiment, state, find, decided]);
  const [comparing, setComparing] = useState(false);
  const compare = () => {
    if (chosen.size > MOST_BESIDE) navigate(comparePage({ trials: [...chosen] }));
    else setComparing(chosen.size > 0);
  };
  useKey({ c: compare });
  const view = useKeptView(STORE);
  const columns = useMemo(
    () => columnsOf({ experiment, names: hyperparametersOf(trials), decided, chosen: new Map() }),
    [experiment, trials, decided],
  );
  if (!trials.length) return <Empty title="No trials yet">They appear here when the search creates them.</Empty>;
  const states = [...new Set(trials.map((trial) => stateName(shownState(trial, decided))))].sort();
  return (
    <>
      <div className="toolbar">
        <Search label="Find trials" value={find} placeholder="hp.lr<1e-3, an id, a decision" onChange={(q) => set({ q })} />
        <Select
          label="State"
          value={state}
          options={[["", "any"], ...states.map((each) => [each, stateWord(each)] as const)]}
          onChange={(st) => set({ st })}
        />
        <span className="ink3 sm d-only" role="status">
          {fitting.length === trials.length ? many(trials.length, "trial") : `${count(fitting.length)} of ${many(trials.length, "trial")}`}
        </span>
        <span className="sp" />
        {chosen.size > 0 && (
          <Button kind="ghost" onClick={() => set({ t: "" })}>
            Clear selection
          </Button>
        )}
        <Button icon={<Layers />} keys="C" not={chosen.size ? undefined : "Select trials first"} onClick={compare}>
          Compare {chosen.size || ""}
        </Button>
        <ColumnPicker columns={columns} view={view} />
      </div>
      <TrialTable
        experiment={experiment}
        trials={fitting}
        view={view}
        selected={chosen}
        onSelect={(ids) => set({ t: [...ids].join(",") })}
      />
      {comparing && chosen.size > 0 && <CompareDrawer trials={[...chosen]} onClose={() => setComparing(false)} />}
    </>
  );
}
