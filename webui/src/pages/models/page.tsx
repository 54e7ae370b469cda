import { Box, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link, useParams } from "react-router";

import { useData } from "../../api/data";
import { useRights } from "../../api/rights";
import { Markdown } from "../../parts/markdown";
import { many, number, size } from "../../parts/format";
import { Button } from "../../ui/button";
import { Card, Facts } from "../../ui/card";
import { ask } from "../../ui/dialog";
import { Drawer, useOpen } from "../../ui/drawer";
import { Menu, type MenuItems } from "../../ui/menu";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Loaded } from "../../ui/status";
import { type Column, Table } from "../../ui/table";
import { NUMBER_PX } from "../../ui/table/widths";
import { Avatar, CopyButton, Copyable, Cut, Tag, Time } from "../../ui/text";
import { metricAt } from "../experiment/metric_at";
import { useAct } from "../settings/change";
import { EditModel, EditVersion, useModelMenu } from "./edit";
import { type Model, pathOf, TOPICS, type Version } from "./facts";
import { Course } from "./course";
import { Lineage, useMetric } from "./lineage";
import "./models.css";

const bytes = (version: Version) => Object.values(version.checkpoint.resources ?? {}).reduce((sum, many) => sum + Number(many), 0);

export function ModelPage() {
  const { name = "" } = useParams();
  const path = pathOf(name);
  usePlace({ crumbs: [{ name: "Models", to: "/models" }, { name }] });
  const answer = useData<{ model: Model; modelVersions: Version[] }>(`${path}/versions?orderBy=ORDER_BY_DESC`, TOPICS);
  const { items, editing, stop } = useModelMenu();
  return (
    <Loaded answer={answer} shape="page">
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
  const remove = async (version: Version) => {
    const text = "Retention then decides how long its checkpoint is kept.";
    if (await ask({ title: `Delete version ${version.version} of ${model.name}?`, text, verb: "Delete", danger: true }))
      await act("DELETE", `${path}/versions/${version.version}`, {}, `Deleted version ${version.version}`);
  };
  const items = (version: Version): MenuItems => [
    { name: "Edit", icon: <Pencil />, not: rights("edit", model), act: () => setEditing(version) },
    null,
    { name: "Delete", icon: <Trash2 />, danger: true, not: rights("delete", model), act: () => void remove(version) },
  ];
  return { items, editing, stop: () => setEditing(null) };
}

const label = (version: Version) =>
  version.labels?.map((tag) => (
    <Tag key={tag} kind={tag === "production" ? "best" : ""}>
      {tag}
    </Tag>
  ));

function Versions({ path, model, versions }: { path: string; model: Model; versions: Version[] }) {
  const [open, setOpen] = useOpen();
  const { items, editing, stop } = useVersionMenu(path, model);
  const at = versions.findIndex((version) => String(version.version) === open);
  const shown = versions[at] ?? versions[0];
  const metric = useMetric(versions);
  const columns: Column<Version>[] = [
    {
      id: "version",
      head: "Version",
      name: true,
      value: (version) => version.version,
      cell: (version) => (
        <span className="cut">
          <button type="button" className="as-link" onClick={() => setOpen(String(version.version))}>
            Version {version.version}
          </button>{" "}
          {label(version)} <span className="sub">{[version.name, version.comment].filter(Boolean).join(": ")}</span>
        </span>
      ),
    },
    {
      id: "checkpoint",
      head: "Checkpoint",
      width: 104,
      least: 92,
      cell: (version) => <code title={version.checkpoint.uuid}>{version.checkpoint.uuid.slice(0, 8)}</code>,
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
      least: NUMBER_PX,
      num: true,
      small: true,
      cell: ({ checkpoint }) => metricAt(checkpoint, metric),
      value: (version) => version.checkpoint.training?.searcherMetric,
    },
    {
      id: "size",
      head: "Size",
      width: 84,
      least: 72,
      num: true,
      cell: (version) => (bytes(version) ? size(bytes(version)) : "–"),
      value: bytes,
    },
    {
      id: "made",
      head: "Registered",
      width: 110,
      least: 94,
      cell: (version) => <Time at={version.creationTime} />,
      value: (version) => version.creationTime,
    },
    {
      id: "user",
      head: "By",
      width: 48,
      cell: (version) => <Avatar name={version.username} small />,
      value: (version) => version.username,
    },
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
        id={(version) => version.version}
        called={(version) => `version ${version.version}`}
        columns={columns}
        actions={items}
        open={open}
        onOpen={(version) => setOpen(String(version.version))}
      />
      <Card title={`Where version ${shown.version} comes from`}>
        <Lineage model={model} version={shown} />
      </Card>
      <Course versions={versions} metric={metric} />
      {at >= 0 && (
        <VersionDrawer
          model={model}
          version={versions[at]!}
          before={versions[at + 1]}
          onClose={() => setOpen(null)}
          onStep={(by) => versions[at + by] && setOpen(String(versions[at + by]!.version))}
          items={items}
        />
      )}
      {editing && <EditVersion path={path} version={editing} onClose={stop} />}
    </>
  );
}

function VersionDrawer({
  model,
  version,
  before,
  onClose,
  onStep,
  items,
}: {
  model: Model;
  version: Version;
  /** The previous version. */
  before?: Version;
  onClose: () => void;
  onStep: (by: 1 | -1) => void;
  items: (version: Version) => MenuItems;
}) {
  const trained = version.checkpoint.training;
  const code = `from determined.experimental import client\n\nversion = client.get_model(${JSON.stringify(model.name)}).get_version(${version.version})\npath = version.checkpoint.download()`;
  const [now, then] = [trained?.searcherMetric, before?.checkpoint.training?.searcherMetric];
  return (
    <Drawer
      title={`Version ${version.version}`}
      head={<Menu label={`Actions of version ${version.version}`} items={items(version)} />}
      onClose={onClose}
      onStep={onStep}
    >
      <Facts
        facts={[
          ["Name", version.name],
          ["Comment", version.comment],
          ["Checkpoint", <Copyable key="c" text={version.checkpoint.uuid} />],
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
          ["Size", bytes(version) ? `${Object.keys(version.checkpoint.resources ?? {}).length} files, ${size(bytes(version))}` : ""],
          ["Kept", "always, because it belongs to a model"],
        ]}
      />
      {trained && (
        <Link className="btn plain own-width" to={`/experiments/${trained.experimentId}/checkpoints?checkpoint=${version.checkpoint.uuid}`}>
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
      {version.notes && (
        <section className="prose">
          <h3>Notes</h3>
          <Markdown text={version.notes} />
        </section>
      )}
      <div>
        <Button icon={<Pencil />} onClick={() => items(version)[0]?.act?.()}>
          Edit
        </Button>
      </div>
    </Drawer>
  );
}
