import { Box, Plus } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Link, useSearchParams } from "react-router";

import { useData } from "../../api/data";
import { ANYWHERE, useRights } from "../../api/rights";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { Check, Search, TextField } from "../../ui/field";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Loaded } from "../../ui/status";
import { Table } from "../../ui/table";
import { Avatar, Cut, Tag, Time } from "../../ui/text";
import { useAct } from "../settings/change";
import { EditModel, useModelMenu } from "./edit";
import { type Model, pathOf, TOPICS } from "./facts";

export { ModelPage } from "./page";

const TAGS = 2;

export function Models() {
  usePlace({ crumbs: [{ name: "Models" }] });
  const answer = useData<{ models: Model[] }>("models", TOPICS);
  const [params, setParams] = useSearchParams();
  const wanted = params.get("q") ?? "";
  const archived = params.has("a");
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  const rights = useRights();
  const [making, setMaking] = useState(false);
  const { items, editing, stop } = useModelMenu();
  const fits = (model: Model) =>
    (archived || !model.archived) &&
    `${model.name} ${model.description} ${model.labels.join(" ")}`.toLowerCase().includes(wanted.toLowerCase());
  return (
    <>
      <PageHead
        title="Models"
        beside={answer.data && String(answer.data.models.filter(fits).length)}
        actions={
          <Button kind="primary" icon={<Plus />} not={rights("create", ANYWHERE)} onClick={() => setMaking(true)}>
            New model
          </Button>
        }
      />
      <div className="toolbar">
        <Search label="Find a model" value={wanted} onChange={(value) => set("q", value)} />
        <Check label="Include archived" checked={archived} onChange={(on) => set("a", on ? "1" : "")} />
      </div>
      <Loaded answer={answer}>
        {({ models }) =>
          models.length ? (
            <Table
              name="Models"
              rows={models.filter(fits)}
              id={(model) => model.id}
              called={(model) => model.name}
              store="models"
              actions={items}
              columns={[
                {
                  id: "name",
                  head: "Name",
                  name: true,
                  value: (model) => model.name,
                  cell: (model) => (
                    <Link className="cut" to={`/models/${encodeURIComponent(model.name)}`} title={model.name}>
                      {model.name} {model.archived && <Tag>archived</Tag>}
                    </Link>
                  ),
                },
                {
                  id: "description",
                  head: "Description",
                  width: 320,
                  cell: (model) => <Cut>{model.description}</Cut>,
                  value: (model) => model.description,
                },
                {
                  id: "labels",
                  head: "Tags",
                  width: 160,
                  cell: (model) => (
                    <span title={model.labels.join(", ")}>
                      {model.labels.slice(0, TAGS).map((label) => (
                        <Tag key={label}>{label}</Tag>
                      ))}
                      {model.labels.length > TAGS && <span className="sub">{model.labels.length - TAGS} more</span>}
                    </span>
                  ),
                },
                {
                  id: "versions",
                  head: "Versions",
                  width: 84,
                  num: true,
                  small: true,
                  cell: (model) => model.numVersions,
                  value: (model) => model.numVersions,
                },
                {
                  id: "changed",
                  head: "Changed",
                  width: 110,
                  cell: (model) => <Time at={model.lastUpdatedTime} />,
                  value: (model) => model.lastUpdatedTime,
                },
                {
                  id: "user",
                  head: "By",
                  width: 48,
                  cell: (model) => <Avatar name={model.username} small />,
                  value: (model) => model.username,
                },
              ]}
            />
          ) : (
            <Card>
              <Empty icon={<Box className="l" />} title="No models yet" command="det model create NAME">
                A model names checkpoints that you want to keep.
              </Empty>
            </Card>
          )
        }
      </Loaded>
      {making && <NewModel taken={answer.data?.models.map((model) => model.name) ?? []} onClose={() => setMaking(false)} />}
      {editing && <EditModel model={editing} path={pathOf(editing.name)} onClose={stop} />}
    </>
  );
}

function NewModel({ taken, onClose }: { taken: string[]; onClose: () => void }) {
  const act = useAct();
  const [name, setName] = useState("");
  const used = taken.includes(name.trim());
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (used) return;
    const body = { name: name.trim(), description: new FormData(event.currentTarget).get("description") };
    if (await act("POST", "models", body, `Created the model ${body.name}`)) onClose();
  };
  return (
    <Dialog title="New model" text="Its versions are checkpoints. They are kept as long as they are registered." onClose={onClose}>
      <form onSubmit={(event) => void make(event)}>
        <TextField label="Name" value={name} onChange={setName} required error={used ? "This name is taken." : undefined} />
        <TextField label="Description" name="description" />
        <DialogFoot onClose={onClose}>Create model</DialogFoot>
      </form>
    </Dialog>
  );
}
