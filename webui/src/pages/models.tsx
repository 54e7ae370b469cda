import { type FormEvent, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";

import { useChange, useData } from "../api/data";
import { type Asked, Card, Confirm, Copyable, Empty, Failure, Loaded, Time } from "../parts/basics";

interface Model {
  id: number;
  name: string;
  description: string;
  labels: string[];
  notes: string;
  metadata: Record<string, unknown>;
  numVersions: number;
  username: string;
  lastUpdatedTime: string;
  archived: boolean;
}
interface Version {
  version: number;
  name: string;
  comment: string;
  notes: string;
  labels: string[];
  metadata: Record<string, unknown>;
  creationTime: string;
  username: string;
  checkpoint: {
    uuid: string;
    metadata: Record<string, unknown>;
    training: { experimentId: number; trialId: number; searcherMetric: number | null } | null;
  };
}

const TOPICS = ["models"];

export function Models() {
  const found = useData<{ models: Model[] }>("models", TOPICS);
  const [wanted, setWanted] = useState("");
  const change = useChange();
  const make = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    change.mutate({ method: "POST", path: "models", body: { name: form.get("name"), description: form.get("description") } });
    event.currentTarget.reset();
  };
  const fits = (one: Model) => `${one.name} ${one.description} ${one.labels.join(" ")}`.toLowerCase().includes(wanted.toLowerCase());
  return (
    <>
      <h1>Models</h1>
      <div className="controls">
        <label>
          find <input type="search" value={wanted} onChange={(event) => setWanted(event.target.value)} />
        </label>
      </div>
      <form className="controls" onSubmit={make}>
        <label>
          new model <input name="name" required />
        </label>
        <label>
          description <input name="description" />
        </label>
        <button type="submit">Make</button>
      </form>
      {change.error ? <Failure error={change.error} /> : null}
      <Card>
        <Loaded found={found}>
          {({ models }) =>
            models.length ? (
              <table aria-label="Models">
                <thead>
                  <tr>
                    <th>Name</th>
                    <th>Description</th>
                    <th>Labels</th>
                    <th className="num">Versions</th>
                    <th>Changed</th>
                    <th>User</th>
                  </tr>
                </thead>
                <tbody>
                  {models.filter(fits).map((model) => (
                    <tr key={model.id}>
                      <td>
                        <Link to={`/models/${encodeURIComponent(model.name)}`}>{model.name}</Link>{" "}
                        {model.archived && <span className="label">archived</span>}
                      </td>
                      <td className="wide">{model.description}</td>
                      <td>
                        {model.labels.map((label) => (
                          <span key={label} className="label">
                            {label}
                          </span>
                        ))}
                      </td>
                      <td className="num">{model.numVersions}</td>
                      <td>
                        <Time at={model.lastUpdatedTime} />
                      </td>
                      <td>{model.username}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <Empty command="det model create NAME">No model yet. A model names checkpoints that shall stay.</Empty>
            )
          }
        </Loaded>
      </Card>
    </>
  );
}

export function ModelPage() {
  const { name = "" } = useParams();
  const path = `models/${encodeURIComponent(name)}`;
  const found = useData<{ model: Model; modelVersions: Version[] }>(`${path}/versions?orderBy=ORDER_BY_DESC`, TOPICS);
  return (
    <Loaded found={found}>
      {({ model, modelVersions }) => (
        <>
          <h1>
            <Link to="/models">Models</Link> / {model.name} {model.archived && <span className="label">archived</span>}
          </h1>
          <p>{model.description}</p>
          <About path={path} model={model} />
          <Card title="Versions">
            {modelVersions.length ? (
              modelVersions.map((one) => <VersionRow key={one.version} path={path} model={model} one={one} />)
            ) : (
              <Empty command={`det model register-version ${model.name} UUID`}>
                No version yet. Checkpoints are registered on their page, too.
              </Empty>
            )}
          </Card>
        </>
      )}
    </Loaded>
  );
}

const words = (text: FormDataEntryValue | null) =>
  String(text ?? "")
    .split(",")
    .map((label) => label.trim())
    .filter(Boolean);

function About({ path, model }: { path: string; model: Model }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [done, setDone] = useState("");
  const navigate = useNavigate();
  const change = useChange(() => setDone("Saved."));
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const body = {
      name: form.get("name"),
      description: form.get("description"),
      notes: form.get("notes"),
      labels: words(form.get("labels")),
    };
    change.mutate(
      { method: "PATCH", path, body },
      { onSuccess: () => navigate(`/models/${encodeURIComponent(String(body.name))}`, { replace: true }) },
    );
  };
  const remove = () =>
    setAsked({
      title: `Delete model ${model.name}?`,
      text: `Its ${model.numVersions} versions are forgotten; their checkpoints stay only as long as retention keeps them.`,
      verb: "Delete",
      act: () => change.mutate({ method: "DELETE", path }, { onSuccess: () => navigate("/models") }),
    });
  return (
    <details className="card">
      <summary>About this model: description, labels, notes, metadata</summary>
      <Confirm asked={asked} onClose={() => setAsked(null)} />
      <form className="form" onSubmit={save}>
        <label>
          Name
          <input name="name" defaultValue={model.name} required />
        </label>
        <label>
          Description
          <input name="description" defaultValue={model.description} />
        </label>
        <label>
          Labels, with commas
          <input name="labels" defaultValue={model.labels.join(", ")} />
        </label>
        <label>
          Notes
          <textarea name="notes" rows={5} defaultValue={model.notes} />
        </label>
        <span className="actions">
          <button type="submit" className="main">
            Save
          </button>
          <button
            type="button"
            onClick={() => change.mutate({ method: "POST", path: `${path}/${model.archived ? "unarchive" : "archive"}` })}
          >
            {model.archived ? "Unarchive" : "Archive"}
          </button>
          <button type="button" onClick={remove}>
            Delete
          </button>
          <span role="status">{done}</span>
        </span>
        {change.error ? <Failure error={change.error} /> : null}
      </form>
      <pre tabIndex={0}>{JSON.stringify(model.metadata, null, 2)}</pre>
    </details>
  );
}

function VersionRow({ path, model, one }: { path: string; model: Model; one: Version }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [done, setDone] = useState("");
  const change = useChange(() => setDone("Saved."));
  const trained = one.checkpoint.training;
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    change.mutate({
      method: "PATCH",
      path: `${path}/versions/${one.version}`,
      body: { name: form.get("name"), comment: form.get("comment"), notes: form.get("notes"), labels: words(form.get("labels")) },
    });
  };
  const remove = () =>
    setAsked({
      title: `Delete version ${one.version} of ${model.name}?`,
      text: "Its checkpoint stays only as long as retention keeps it.",
      verb: "Delete",
      act: () => change.mutate({ method: "DELETE", path: `${path}/versions/${one.version}` }),
    });
  return (
    <details className="version">
      <summary>
        <strong>Version {one.version}</strong> {one.name} <span className="soft">{one.comment}</span>{" "}
        {trained && (
          <>
            from experiment <Link to={`/experiments/${trained.experimentId}/overview`}>{trained.experimentId}</Link>, trial{" "}
            <Link to={`/experiments/${trained.experimentId}/trials/${trained.trialId}/overview`}>{trained.trialId}</Link>
            {trained.searcherMetric !== null && `, metric ${trained.searcherMetric}`}
          </>
        )}{" "}
        · <Time at={one.creationTime} /> by {one.username}
      </summary>
      <Confirm asked={asked} onClose={() => setAsked(null)} />
      <p>
        <Copyable text={one.checkpoint.uuid} />{" "}
        {trained && <Link to={`/experiments/${trained.experimentId}/checkpoints?checkpoint=${one.checkpoint.uuid}`}>its files</Link>}
      </p>
      <p className="soft">To load it</p>
      <pre
        tabIndex={0}
      >{`from determined.experimental import client\n\npath = client.get_model(${JSON.stringify(model.name)}).get_version(${one.version}).checkpoint.download()`}</pre>
      <form className="form" onSubmit={save}>
        <label>
          Name
          <input name="name" defaultValue={one.name} />
        </label>
        <label>
          Comment
          <input name="comment" defaultValue={one.comment} />
        </label>
        <label>
          Labels, with commas
          <input name="labels" defaultValue={(one.labels ?? []).join(", ")} />
        </label>
        <label>
          Notes
          <textarea name="notes" rows={3} defaultValue={one.notes} />
        </label>
        <span className="actions">
          <button type="submit">Save</button>
          <button type="button" onClick={remove}>
            Delete
          </button>
          <span role="status">{done}</span>
        </span>
        {change.error ? <Failure error={change.error} /> : null}
      </form>
    </details>
  );
}
