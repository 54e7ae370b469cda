import { useQueryClient } from "@tanstack/react-query";
import { Copy, ExternalLink, SquareTerminal, X } from "lucide-react";
import { Link, useParams, useSearchParams } from "react-router";

import { send } from "../api/client";
import { useData } from "../api/data";
import { useRights } from "../api/rights";
import { stateName } from "../parts/format";
import { Logs } from "../parts/logs";
import { NewNotebook } from "./new_notebook";
import { LinkButton } from "../ui/button";
import { Card } from "../ui/card";
import { ask } from "../ui/dialog";
import { PageHead, usePlace } from "../ui/page";
import { State } from "../ui/state";
import { Empty, Loaded } from "../ui/status";
import { type Column, Table } from "../ui/table";
import { Views } from "../ui/tabs";
import { Avatar, Cut, Time } from "../ui/text";
import { failed, toast } from "../ui/toast";

interface Task {
  id: string;
  description: string;
  state: string;
  startTime: string;
  username: string;
  userId: number;
  workspaceId: number;
  exitStatus: string;
  serviceAddress?: string;
}

const KINDS = [
  { id: "commands", name: "Commands", command: "det cmd run nvidia-smi" },
  { id: "notebooks", name: "Notebooks", command: "det notebook start" },
  { id: "shells", name: "Shells", command: "det shell start" },
  { id: "tensorboards", name: "TensorBoards", command: "det tensorboard start 1" },
] as const;
type Kind = (typeof KINDS)[number]["id"];

export function Tasks() {
  usePlace({ crumbs: [{ name: "Tasks" }] });
  const [params, setParams] = useSearchParams();
  const commands = useData<{ commands: Task[] }>("commands?orderBy=ORDER_BY_DESC", ["tasks", "cluster"]);
  const boards = useData<{ tensorboards: Task[] }>("tensorboards?orderBy=ORDER_BY_DESC", ["tasks", "cluster"]);
  const notebooks = useData<{ notebooks: Task[] }>("notebooks?orderBy=ORDER_BY_DESC", ["tasks", "cluster"]);
  const shells = useData<{ shells: Task[] }>("shells?orderBy=ORDER_BY_DESC", ["tasks", "cluster"]);
  const kind = (params.get("kind") as Kind | null) ?? "commands";
  const rows: Record<Kind, Task[] | undefined> = {
    commands: commands.data?.commands,
    notebooks: notebooks.data?.notebooks,
    shells: shells.data?.shells,
    tensorboards: boards.data?.tensorboards,
  };
  const running = KINDS.flatMap((kind) => rows[kind.id] ?? []).filter((kind) => stateName(kind.state) === "RUNNING").length;
  return (
    <>
      <PageHead title="Tasks" beside={`${running} running`} actions={<NewNotebook />} />
      <Views
        name="Kinds"
        value={kind}
        views={KINDS.map((kind) => ({ id: kind.id, name: kind.name, count: rows[kind.id]?.length }))}
        onChange={(id) => setParams(id === "commands" ? {} : { kind: id }, { replace: true })}
      />
      {kind === "commands" && <Loaded answer={commands}>{({ commands }) => <List kind="commands" rows={commands} />}</Loaded>}
      {kind === "notebooks" && <Loaded answer={notebooks}>{({ notebooks }) => <List kind="notebooks" rows={notebooks} />}</Loaded>}
      {kind === "shells" && <Loaded answer={shells}>{({ shells }) => <List kind="shells" rows={shells} />}</Loaded>}
      {kind === "tensorboards" && <Loaded answer={boards}>{({ tensorboards }) => <List kind="tensorboards" rows={tensorboards} />}</Loaded>}
    </>
  );
}

function List({ kind, rows }: { kind: Kind; rows: Task[] }) {
  const client = useQueryClient();
  const rights = useRights();
  const { command, name } = KINDS.find((entry) => entry.id === kind)!;
  const kill = async (task: Task) => {
    if (!(await ask({ title: `Kill ${task.description}?`, text: "It stops immediately.", verb: "Kill", danger: true }))) return;
    try {
      await send("POST", `${kind}/${task.id}/kill`);
      toast({ text: `Killed ${task.description}` });
    } catch (error) {
      failed(error, task.description);
    }
    void client.invalidateQueries();
  };
  const columns: Column<Task>[] = [
    {
      id: "name",
      head: "Task",
      name: true,
      cell: (task) => (
        <Link className="cut" to={`/${kind}/${task.id}/logs`} title={task.description}>
          {task.description}
        </Link>
      ),
      value: (task) => task.description,
    },
    {
      id: "state",
      head: "State",
      width: 130,
      small: true,
      cell: (task) => <State state={task.state} why={task.exitStatus} />,
      value: (task) => task.state,
    },
    { id: "exit", head: "How it ended", width: 260, cell: (task) => <Cut>{task.exitStatus}</Cut> },
    { id: "start", head: "Started", width: 120, cell: (task) => <Time at={task.startTime} />, value: (task) => task.startTime },
    { id: "user", head: "By", width: 48, cell: (task) => <Avatar name={task.username} small />, value: (task) => task.username },
  ];
  if (!rows.length)
    return (
      <Card>
        <Empty
          icon={<SquareTerminal className="l" />}
          title={`No ${name === "TensorBoards" ? name : name.toLowerCase()} yet`}
          command={command}
        >
          Tasks other than experiments appear here.
        </Empty>
      </Card>
    );
  return (
    <Table
      name={name}
      rows={rows}
      id={(task) => task.id}
      called={(task) => task.description}
      columns={columns}
      store={`tasks ${kind}`}
      act={(task) =>
        task.serviceAddress && (
          <LinkButton small href={task.serviceAddress} icon={<ExternalLink />}>
            Open
          </LinkButton>
        )
      }
      actWidth={kind === "tensorboards" || kind === "notebooks" ? 120 : undefined}
      actions={(task) => [
        ...(kind === "shells"
          ? [{ name: "Copy det shell open", icon: <Copy />, act: () => void navigator.clipboard?.writeText(`det shell open ${task.id}`) }]
          : []),
        {
          name: "Kill",
          icon: <X />,
          danger: true,
          not: task.state === "STATE_TERMINATED" ? "has ended" : rights("control_task", task),
          act: () => void kill(task),
        },
      ]}
    />
  );
}

export function TaskLogs() {
  const { id = "" } = useParams();
  usePlace({ crumbs: [{ name: "Tasks", to: "/tasks" }, { name: id }], title: `Log of ${id}` });
  return (
    <>
      <PageHead title={`Task ${id}`} />
      <Logs source={`tasks/${id}`} command={`det task logs ${id}`} />
    </>
  );
}
