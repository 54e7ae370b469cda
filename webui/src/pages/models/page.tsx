import { Box, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link, useParams } from "react-router";

import { useData } from "../../api/data";
import { useRights } from "../../api/rights";
import { Markdown } from "../../parts/markdown";
import { digits, many, number, size } from "../../parts/format";
import { Button } from "../../ui/button";
import { Card, Facts } from "../../ui/card";
import { ask } from "../../ui/dialog";
import { Drawer, useOpen } from "../../ui/drawer";
import { Menu, type MenuItems } from "../../ui/menu";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Loaded } from "../../ui/status";
import { type Column, Table } from "../../ui/table";
import { Avatar, CopyButton, Copyable, Cut, Tag, Time } from "../../ui/text";
import { useAct } from "../settings/change";
import { EditModel, EditVersion, useModelMenu } from "./edit";
import { type Model, pathOf, TOPICS, type Version } from "./facts";
import { Course } from "./course";
import { Lineage, useMetric } from "./lineage";
import "./models.css";

const bytes = (one: Version) => Object.values(one.checkpoint.resources ?? {}).reduce((sum, many) => sum + Number(many), 0);

export function ModelPage() {
  const { name = "" } = useParams();
  const path = pathOf(name);
  usePlace({ crumbs: [{ name: "Models", to: "/models" }, { name }] });
  const found = useData<{ model: Model; modelVersions: Version[] }>(`${path}/versions?orderBy=ORDER_BY_DESC`, TOPICS);
  const { items, editing, stop } = useModelMenu();
  return (
    <Loaded found={found} shape="page">
      {({ model, modelVersions }) => (
        <>
          <PageHead
            title={model.name}
            tags={[...(model.archived ? ["archived"] : []), ...model.labels]}
            facts={[
              model.description && <Cut key="d">{model.description}</Cut>,
              <span key="u" className="check">
                <Avatar name={model.username} plain small /> {model.username}
              </span>,
              many(model.numVersions, "version"),
            ]}
            actions={<Menu label={`Actions of ${model.name}`} kind="plain" small={false} items={items(model)} />}
          />
          <Versions path={path} model={model} versions={modelVersions} />
          {model.notes && (
            <Card title="Notes">
              <div className="prose">
                <Markdown text={model.notes} />
              </div>
            </Card>
          )}
          {Object.keys(model.metadata).length > 0 && (
            <Card title="Metadata">
              <pre className="code" tabIndex={0}>
                {JSON.stringify(model.metadata, null, 2)}
              </pre>
            </Card>
          )}
          {editing && <EditModel model={editing} path={path} onClose={stop} />}
        </>
      )}
    </Loaded>
  );
}

function useVersionMenu(path: string, model: Model) {
  const [editing, setEditing] = useState<Version | null>(null);
  const act = useAct();
  const rights = useRights();
  const remove = async (one: Version) => {
    const text = "Retention then decides how long its checkpoint is kept.";
    if (await ask({ title: `Delete version ${one.version} of ${model.name}?`, text, verb: "Delete", danger: true }))
      await act("DELETE", `${path}/versions/${one.version}`, {}, `Deleted version ${one.version}`);
  };
  const items = (one: Version): MenuItems => [
    { name: "Edit", icon: <Pencil />, not: rights("edit", model), act: () => setEditing(one) },
    null,
    { name: "Delete", icon: <Trash2 />, danger: true, not: rights("delete", model), act: () => void remove(one) },
  ];
  return { items, editing, stop: () => setEditing(null) };
}

const label = (one: Version) =>
  one.labels?.map((tag) => (
    <Tag key={tag} kind={tag === "production" ? "best" : ""}>
      {tag}
    </Tag>
  ));

function Versions({ path, model, versions }: { path: string; model: Model; versions: Version[] }) {
  const [open, setOpen] = useOpen();
  const { items, editing, stop } = useVersionMenu(path, model);
  const at = versions.findIndex((one) => String(one.version) === open);
  const shown = versions[at] ?? versions[0];
  const metric = useMetric(versions);
  const columns: Column<Version>[] = [
    {
      id: "version",
      head: "Version",
      name: true,
      value: (one) => one.version,
      cell: (one) => (
        <span className="cut">
          <button type="button" className="as-link" onClick={() => setOpen(String(one.version))}>
            Version {one.version}
          </button>{" "}
          {label(one)} <span className="sub">{[one.name, one.comment].filter(Boolean).join(": ")}</span>
        </span>
      ),
    },
    {
      id: "checkpoint",
      head: "Checkpoint",
      width: 104,
      least: 92,
      cell: (one) => <code title={one.checkpoint.uuid}>{one.checkpoint.uuid.slice(0, 8)}</code>,
    },
    {
      id: "from",
      head: "Experiment / trial",
      width: 140,
      least: 92,
      cell: ({ checkpoint: { training } }) =>
        training && (
          <>
            <Link to={`/experiments/${training.experimentId}/overview`}>{training.experimentId}</Link> /{" "}
            <Link to={`/experiments/${training.experimentId}/trials/${training.trialId}/overview`}>{training.trialId}</Link>
          </>
        ),
    },
    {
      id: "metric",
      head: metric || "Metric",
      width: 118,
      least: 84,
      num: true,
      small: true,
      cell: ({ checkpoint: { training } }) => (typeof training?.searcherMetric === "number" ? digits(training.searcherMetric) : ""),
      value: (one) => one.checkpoint.training?.searcherMetric,
    },
    { id: "size", head: "Size", width: 84, least: 72, num: true, cell: (one) => (bytes(one) ? size(bytes(one)) : "–"), value: bytes },
    {
      id: "made",
      head: "Registered",
      width: 110,
      least: 94,
      cell: (one) => <Time at={one.creationTime} />,
      value: (one) => one.creationTime,
    },
    { id: "user", head: "By", width: 48, cell: (one) => <Avatar name={one.username} small />, value: (one) => one.username },
  ];
  if (!shown)
    return (
      <Card>
        <Empty icon={<Box className="l" />} title="No versions yet" command={`det model register-version ${model.name} UUID`}>
          You can also register a checkpoint on its own page.
        </Empty>
      </Card>
    );
  return (
    <>
      <Table
        name="Versions"
        rows={versions}
        id={(one) => one.version}
        called={(one) => `version ${one.version}`}
        columns={columns}
        actions={items}
        open={open}
        onOpen={(one) => setOpen(String(one.version))}
      />
      <Card title={`Where version ${shown.version} comes from`}>
        <Lineage model={model} one={shown} />
      </Card>
      <Course versions={versions} metric={metric} />
      {at >= 0 && (
        <VersionDrawer
          model={model}
          one={versions[at]!}
          before={versions[at + 1]}
          onClose={() => setOpen(null)}
          onStep={(by) => versions[at + by] && setOpen(String(versions[at + by]!.version))}
          items={items}
        />
      )}
      {editing && <EditVersion path={path} one={editing} onClose={stop} />}
    </>
  );
}

function VersionDrawer({
  model,
  one,
  before,
  onClose,
  onStep,
  items,
}: {
  model: Model;
  one: Version;
  /** The previous version. */
  before?: Version;
  onClose: () => void;
  onStep: (by: 1 | -1) => void;
  items: (one: Version) => MenuItems;
}) {
  const trained = one.checkpoint.training;
  const code = `from determined.experimental import client\n\nversion = client.get_model(${JSON.stringify(model.name)}).get_version(${one.version})\npath = version.checkpoint.download()`;
  const [now, then] = [trained?.searcherMetric, before?.checkpoint.training?.searcherMetric];
  return (
    <Drawer
      title={`Version ${one.version}`}
      head={<Menu label={`Actions of version ${one.version}`} items={items(one)} />}
      onClose={onClose}
      onStep={onStep}
    >
      <Facts
        facts={[
          ["Name", one.name],
          ["Comment", one.comment],
          ["Checkpoint", <Copyable key="c" text={one.checkpoint.uuid} />],
          [
            "From",
            trained && (
              <Link key="f" className="link" to={`/experiments/${trained.experimentId}/trials/${trained.trialId}/overview`}>
                trial {trained.trialId} of experiment {trained.experimentId}
              </Link>
            ),
          ],
          ["Metric", now === null || now === undefined ? "" : number(now)],
          [
            before ? `Against version ${before.version}` : "",
            typeof now === "number" && typeof then === "number" ? `${now >= then ? "+" : "−"} ${number(Math.abs(now - then), 3)}` : "",
          ],
          ["Size", bytes(one) ? `${Object.keys(one.checkpoint.resources ?? {}).length} files, ${size(bytes(one))}` : ""],
          ["Kept", "always, because it belongs to a model"],
        ]}
      />
      {trained && (
        <Link className="btn plain own-width" to={`/experiments/${trained.experimentId}/checkpoints?checkpoint=${one.checkpoint.uuid}`}>
          Its files
        </Link>
      )}
      <section>
        <h3 className="check">
          Load it <CopyButton text={code} label="Copy the code" />
        </h3>
        <pre className="code" tabIndex={0}>
          {code}
        </pre>
      </section>
      {one.notes && (
        <section className="prose">
          <h3>Notes</h3>
          <Markdown text={one.notes} />
        </section>
      )}
      <div>
        <Button icon={<Pencil />} onClick={() => items(one)[0]?.act?.()}>
          Edit
        </Button>
      </div>
    </Drawer>
  );
}
