/** Creates an experiment in the browser: its code, its configuration, and a preview of what it would do. */

import { useQuery } from "@tanstack/react-query";
import { CircleCheck, FlaskConical } from "lucide-react";
import { useEffect, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";

import { ApiError, get, send } from "../../api/client";
import { useChange, useData } from "../../api/data";
import { mayPass } from "../../api/queries";
import { ANYWHERE, type Owned, useRights } from "../../api/rights";
import type { Config, Experiment, Trial } from "../../api/types";
import { many, number } from "../../parts/format";
import { Button } from "../../ui/button";
import { Card, Note } from "../../ui/card";
import { Check } from "../../ui/field";
import { Figure, Figures } from "../../ui/figures";
import { PageHead, usePlace } from "../../ui/page";
import { Failure } from "../../ui/status";
import { toast } from "../../ui/toast";
import "../../code/code.css";
import { asYaml } from "../../code/yaml";
import { configurations, items } from "./code";
import { Editor } from "./editor";
import "./new.css";
import { amount, cost, pace, type Pool, type Simulation, start } from "./plan";
import { type Code, Source } from "./source";
import { type Known, wrongs } from "./yaml";

const FIRST = `name: my-experiment
entrypoint: python3 train.py
searcher:
  name: single
  metric: loss
  max_length: 100
resources:
  slots_per_trial: 1
`;
const SETTLED_MS = 400;

interface Checked {
  config: Config;
  notices: string[];
  simulation: Simulation | null;
}

export function NewExperiment() {
  usePlace({ crumbs: [{ name: "Experiments", to: "/experiments" }, { name: "New experiment" }] });
  const [params] = useSearchParams();
  const rights = useRights();
  // Nothing until the configuration of the earlier experiment is there: another one would flash.
  const [text, setText] = useState(params.has("from") ? "" : FIRST);
  const [code, setCode] = useState<Code>({ from: params.has("from") ? "earlier" : "folder", files: [], parent: null });
  const [activate, setActivate] = useState(true);
  const navigate = useNavigate();
  const fields = useData<{ fields: Known[] }>("experiment-config/fields");
  const pools = useData<{ resourcePools: Pool[] }>("resource-pools", ["queue", "cluster"]);
  const settled = useSettled(text);
  const isFork = code.from === "earlier" && code.parent !== null;
  const parentId = isFork ? code.parent! : undefined;
  const checked = useQuery({
    queryKey: ["new experiment", settled, parentId],
    queryFn: () => checkedBy(settled, parentId),
    retry: false,
    enabled: Boolean(settled.trim()),
    placeholderData: (before: Checked | undefined) => before,
  });
  const parent = useData<{ experiment: Experiment }>(parentId ? `experiments/${parentId}` : null);
  const trials = useData<{ trials: Trial[] }>(parentId ? `experiments/${parentId}/trials?lean=true` : null);
  const submit = useChange((answer) => {
    toast({ text: `Experiment ${answer.experiment.id} was submitted.` });
    navigate(`/experiments/${answer.experiment.id}/overview`);
  });

  const takeParent = async (id: number) => {
    setCode({ from: "earlier", files: [], parent: id || null });
    if (id) setText(asYaml((await get<{ experiment: Experiment }>(`experiments/${id}`)).experiment.originalConfig));
  };
  const from = Number(params.get("from"));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address sets the start, once
  useEffect(() => {
    if (from) void takeParent(from);
  }, [from]);
  const takeCode = (next: Code) => {
    setCode(next);
    const [config] = configurations(next.files);
    if (config) setText(new TextDecoder().decode(config.bytes));
  };

  // A service that did not answer says nothing about the configuration. It is asked again by itself, and submitting checks, too.
  const away = checked.error && mayPass(checked.error) ? checked.error.message : "";
  const wrong = checked.error && !away ? wrongs(settled, checked.error.message) : [];
  const missing = isFork || code.files.length ? "" : "Choose the code first";
  const empty = text.trim() ? "" : "The configuration is empty";
  const project = useData<{ project: Owned }>(params.has("project") ? `projects/${Number(params.get("project"))}` : null);
  const not =
    rights("create", project.data?.project ?? ANYWHERE) ||
    missing ||
    empty ||
    (wrong.length ? "The configuration is not valid yet" : checked.isPending ? "It is being checked" : "");
  const go = () =>
    submit.mutate({
      method: "POST",
      path: "experiments",
      body: {
        config: text,
        activate,
        parentId: parentId ?? 0,
        modelDefinition: isFork ? [] : items(code.files, Date.now()),
        projectId: Number(params.get("project") ?? 0),
      },
    });

  return (
    <>
      <PageHead
        title="New experiment"
        facts={["Checked as you type. Nothing starts until you submit."]}
        actions={
          <Button kind="primary" icon={<FlaskConical />} not={not} disabled={submit.isPending} onClick={go}>
            Submit
          </Button>
        }
      />
      {submit.error ? <Failure error={submit.error} /> : null}
      <div className="cols new">
        <Card title="Configuration" flush more={<span className="sm ink3">Ctrl Space completes</span>}>
          <Editor text={text} onChange={setText} fields={fields.data?.fields ?? []} wrong={text === settled ? wrong : []} />
          <Verdict wrong={wrong} away={away} fine={checked.data !== undefined && !checked.error} />
        </Card>
        <div className="stack">
          <Card title="Code">
            <Source code={code} onChange={takeCode} onParent={(id) => void takeParent(id)} />
          </Card>
          <Card title="What it will do">
            {checked.data && !checked.error ? (
              <Plan
                checked={checked.data}
                pools={pools.data?.resourcePools ?? []}
                parent={parent.data?.experiment}
                trials={trials.data?.trials ?? []}
              />
            ) : (
              <p className="ink3">Shown once the configuration is valid.</p>
            )}
            <Check label="Start when submitted" checked={activate} onChange={setActivate} />
          </Card>
        </div>
      </div>
    </>
  );
}

/** The text once it has not changed for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

async function checkedBy(config: string, parentId?: number): Promise<Checked> {
  const answer = await send<{ config: Config; notices: string[] }>("POST", "experiments", {
    config,
    validateOnly: true,
    parentId: parentId ?? 0,
  });
  try {
    const { simulation } = await send<{ simulation: Simulation }>("POST", "preview-hp-search", { config: answer.config });
    return { ...answer, simulation };
  } catch (error) {
    // A search that runs in its own program cannot be simulated.
    if (error instanceof ApiError && error.status < 500) return { ...answer, simulation: null };
    throw error;
  }
}

function Verdict({ wrong, away, fine }: { wrong: ReturnType<typeof wrongs>; away: string; fine: boolean }) {
  return (
    <div className="verdict" aria-live="polite">
      {fine && (
        <p className="good">
          <CircleCheck className="s" /> Valid. Missing fields use their defaults.
        </p>
      )}
      {away && <p className="hint">It could not be checked yet: {away}. It is tried again.</p>}
      {wrong.map((wrong) => (
        <p key={`${wrong.path} ${wrong.message}`} className="hint err">
          <span>
            <b className="b">
              Line {wrong.line + 1}
              {wrong.path && `, ${wrong.path}`}
            </b>
            : {wrong.message}
          </span>
        </p>
      ))}
    </div>
  );
}

function Plan({ checked, pools, parent, trials }: { checked: Checked; pools: Pool[]; parent?: Experiment; trials: Trial[] }) {
  const { config, simulation, notices } = checked;
  const pool = pools.find((pool) => pool.name === config.resources?.resource_pool);
  const wanted = simulation ? amount(config, simulation) : null;
  const slots = config.resources?.slots_per_trial ?? 1;
  const price = wanted ? cost(wanted, config, pace(parent, trials)) : "";
  return (
    <div className="stack plan">
      {wanted && (
        <Figures>
          <Figure name="Trials" value={number(wanted.trials)} note={`${many(slots, "slot")} each`} />
          <Figure name="Training in all" value={number(wanted.length)} unit={wanted.unit} note={config.searcher.name} />
          <Figure
            name="Cost"
            value={price || "not known"}
            note={
              price ? `at the pace of experiment ${parent!.id}` : parent ? `no pace in ${wanted.unit} to go by` : "no earlier run to go by"
            }
          />
        </Figures>
      )}
      <p>
        <b className="b">Start</b> {start(pool, slots)}
      </p>
      {notices.map((notice) => (
        <Note key={notice} kind="warn">
          {notice}
        </Note>
      ))}
    </div>
  );
}
