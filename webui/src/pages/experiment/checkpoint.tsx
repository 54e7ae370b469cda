/** One checkpoint: its details and its registration as a model version. Several: their metadata side by side. */

import { ArrowDownToLine, Box, Trash2 } from "lucide-react";
import { type FormEvent, useId } from "react";
import { Link } from "react-router";

import { useChange, useData } from "../../api/data";
import { ANYWHERE, useRights } from "../../api/rights";
import type { Checkpoint } from "../../api/types";
import "../../code/code.css";
import { asYaml } from "../../code/yaml";
import { flat, number, size } from "../../parts/format";
import { Button, LinkButton } from "../../ui/button";
import { Facts, Fold } from "../../ui/card";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { Drawer } from "../../ui/drawer";
import { Field } from "../../ui/field";
import { State } from "../../ui/state";
import { Failure } from "../../ui/status";
import { Copyable, Time } from "../../ui/text";
import { toast } from "../../ui/toast";
import { metricAt } from "./metric_at";
import { bytesOf, isThere } from "./policy";

interface DrawerProps {
  checkpoint: Checkpoint;
  metric: string;
  why?: string;
  onClose: () => void;
  onStep: (by: 1 | -1) => void;
  onRegister: () => void;
  /** Why the user may not delete it. */
  undeletable?: string;
  onDelete: () => void;
}

export function CheckpointDrawer({ checkpoint, metric, why, onClose, onStep, onRegister, undeletable, onDelete }: DrawerProps) {
  const there = isThere(checkpoint);
  const rights = useRights();
  const { training } = checkpoint;
  return (
    <Drawer title={`Checkpoint ${checkpoint.uuid.slice(0, 8)}`} onClose={onClose} onStep={onStep}>
      <div className="toolbar">
        {there && (
          <LinkButton small icon={<ArrowDownToLine />} href={`/checkpoints/${checkpoint.uuid}`}>
            Download
          </LinkButton>
        )}
        <Button small kind="primary" icon={<Box />} not={there ? rights("edit", ANYWHERE) : "Its files are gone"} onClick={onRegister}>
          Register
        </Button>
        <Button small kind="ghost" icon={<Trash2 />} not={there ? undeletable : "Its files are gone"} onClick={onDelete}>
          Delete
        </Button>
      </div>
      <Facts
        facts={[
          ["Id", checkpoint.uuid],
          ["State", <State key="state" state={checkpoint.state} />],
          ["Kept", why],
          [
            "Trial",
            training && (
              <Link className="link" to={`/experiments/${training.experimentId}/trials/${training.trialId}/overview`}>
                {training.trialId}
              </Link>
            ),
          ],
          ["Batches", number(checkpoint.metadata.steps_completed)],
          [metric || "Metric", metricAt(checkpoint, metric)],
          ["Size", size(bytesOf(checkpoint))],
          ["Stored", <Time key="stored" at={checkpoint.reportTime} />],
        ]}
      />
      <h3>To load it</h3>
      <pre
        className="code"
        tabIndex={0}
      >{`from determined.experimental import client\n\npath = client.get_checkpoint("${checkpoint.uuid}").download()`}</pre>
      <Copyable text={`det checkpoint download ${checkpoint.uuid}`} />
      <h3>Metadata</h3>
      <pre className="code" tabIndex={0}>
        {asYaml(checkpoint.metadata)}
      </pre>
      <Fold title={`Files, ${Object.keys(checkpoint.resources).length}`} open>
        <ul className="kept-files">
          {Object.entries(checkpoint.resources).map(([path, part]) => (
            <li key={path}>
              <span className="mono cut" title={path}>
                {path}
              </span>
              <span className="ink3 nowrap">{size(part)}</span>
            </li>
          ))}
        </ul>
      </Fold>
    </Drawer>
  );
}

interface Models {
  models: { name: string }[];
}

export function Register({ uuid, onClose }: { uuid: string; onClose: () => void }) {
  const models = useData<Models>("models?archived=false", ["models"]);
  const id = useId();
  const made = useChange();
  const change = useChange((answer) => {
    const { model, version } = answer.modelVersion;
    toast({
      text: `Registered as version ${version} of ${model.name}.`,
      action: { name: "Show it", to: `/models/${encodeURIComponent(model.name)}` },
    });
    onClose();
  });
  const register = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("model")).trim();
    if (!models.data?.models.some((model) => model.name === name))
      await made.mutateAsync({ method: "POST", path: "models", body: { name } });
    change.mutate({ method: "POST", path: `models/${encodeURIComponent(name)}/versions`, body: { checkpointUuid: uuid } });
  };
  return (
    <Dialog title={`Register checkpoint ${uuid.slice(0, 8)}`} onClose={onClose}>
      <form onSubmit={(event) => void register(event).catch(() => undefined)}>
        <Field label="Model" hint="An existing model, or a name for a new one. Policies never delete its checkpoints.">
          {(wired) => <input className="input" name="model" list={id} required autoComplete="off" {...wired} />}
        </Field>
        <datalist id={id}>
          {models.data?.models.map((model) => (
            <option key={model.name}>{model.name}</option>
          ))}
        </datalist>
        {made.error || change.error ? <Failure error={made.error ?? change.error} /> : null}
        <DialogFoot onClose={onClose} disabled={made.isPending || change.isPending}>
          Register
        </DialogFoot>
      </form>
    </Dialog>
  );
}

/** Metadata of several checkpoints, field by field; fields that differ come first. */
export function Metadata({ some, onClose }: { some: Checkpoint[]; onClose: () => void }) {
  const metadata = some.map((checkpoint) =>
    flat({ size: size(bytesOf(checkpoint)), metric: checkpoint.training?.searcherMetric, ...checkpoint.metadata }),
  );
  const names = [...new Set(metadata.flatMap(Object.keys))];
  const differs = (name: string) => new Set(metadata.map((values) => JSON.stringify(values[name]))).size > 1;
  const ordered = [...names.filter(differs), ...names.filter((name) => !differs(name))];
  return (
    <Dialog wide title={`Metadata of ${some.length} checkpoints`} onClose={onClose}>
      <div className="tw">
        <table className="pairs" aria-label="Metadata">
          <thead>
            <tr>
              <th>Field</th>
              {some.map((checkpoint) => (
                <th key={checkpoint.uuid}>
                  <code>{checkpoint.uuid.slice(0, 8)}</code>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ordered.map((name) => (
              <tr key={name} className={differs(name) ? "differ" : ""}>
                <th scope="row">
                  {name}
                  {differs(name) && <span className="vh"> differs</span>}
                </th>
                {metadata.map((values, at) => (
                  <td key={some[at]!.uuid}>
                    {typeof values[name] === "number" ? number(values[name]) : values[name] === undefined ? "" : String(values[name])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Dialog>
  );
}
