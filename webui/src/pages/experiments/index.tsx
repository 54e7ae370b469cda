import { Ellipsis, FlaskConical, Group as GroupIcon, ListFilter, Star } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { useNavigate, useParams } from "react-router";

import { get } from "../../api/client";
import { fetchedPart } from "../../api/fetched";
import { useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import { useExperimentMenu } from "../../lists/acts";
import { column, defaultIn, offered, type Row } from "../../lists/columns";
import { useCourses } from "../../lists/course";
import { FilterForm } from "../../lists/filters";
import { MoveDialog } from "../../lists/move";
import { NewExperiment } from "../../lists/new";
import { empty, format, parse } from "../../lists/query";
import { QueryBox } from "../../lists/querybox";
import { Selection } from "../../lists/selection";
import { conditions, type Known, without } from "../../lists/suggest";
import { forgetView, saveView } from "../../lists/views";
import { seeProject } from "../../parts/seen";
import { Button } from "../../ui/button";
import { Dialog, DialogFoot } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { useKey } from "../../ui/keys";
import { useScreen } from "../../ui/media";
import { Menu, Popover } from "../../ui/menu";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Failure, Loading } from "../../ui/status";
import { ColumnPicker, type ColumnView, Table } from "../../ui/table";
import { Chip } from "../../ui/text";
import { comparePage, MOST_BESIDE } from "../comparing/beside";
import { exportAll } from "./file";
import { groupHead, GROUPS } from "./groups";
import { heatable, heatOf } from "./heat";
import { type Found, GROUPED, useAll, useWindows } from "./rows";
import { Tabs } from "./tabs";
import { askedFor, type ListView, sortText, useListView } from "./view";
import "./experiments.css";

const CompareDrawer = lazy(() => fetchedPart(() => import("../comparing/drawer")).then((module) => ({ default: module.CompareDrawer })));
const MOST_CHOSEN = 1000;

interface Named {
  project: { name: string; workspaceName: string; workspaceId: number };
}

/** Names and values that a query may contain. */
function useKnown(project: number): { vocabulary: Known; cards: ReturnType<typeof offered> } {
  const columns = useData<{ columns: { column: string }[] }>(`projects/${project}/columns`);
  const tags = useData<{ labels: string[] }>("experiment/labels");
  const users = useData<{ users: { username: string }[] }>("users", ["users"]);
  return useMemo(() => {
    const names = columns.data?.columns.map((column) => column.column) ?? [];
    return {
      vocabulary: {
        columns: names,
        tags: tags.data?.labels ?? [],
        users: users.data?.users.map((user) => user.username) ?? [],
        projects: [],
      },
      cards: offered(names),
    };
  }, [columns.data, tags.data, users.data]);
}

export function Experiments() {
  const view = useListView();
  const project = Number(useParams().project ?? 0);
  const named = useData<Named>(project ? `projects/${project}` : null, ["workspaces"]);
  const name = named.data?.project.name;
  useEffect(() => {
    if (project && name) seeProject(project, name);
  }, [project, name]);
  usePlace({
    crumbs: [
      { name: "Experiments", to: "/experiments" },
      ...(named.data ? [{ name: named.data.project.workspaceName, to: `/workspaces/${named.data.project.workspaceId}` }] : []),
      ...(name ? [{ name }] : []),
    ],
  });
  const { vocabulary, cards } = useKnown(project);
  const standard = defaultIn(useScreen());
  const shown = view.shown ?? standard;
  const asked = askedFor(view, project, shown);
  // While a query is invalid, the list shows the last valid one.
  const worked = useRef(asked);
  if (asked) worked.current = asked;
  const path = worked.current;
  const windows = useWindows(view.group ? null : path);
  const all = useAll(view.group ? path : null);
  const total = view.group ? all.data?.pagination.total : windows.total;
  const error = view.group ? all.error : windows.error;
  return (
    <>
      <PageHead
        title={name ?? "Experiments"}
        beside={total === undefined ? "" : <span role="status">{total.toLocaleString("en")} found</span>}
        actions={
          <>
            <SaveView view={view} />
            <NewExperiment project={project} />
          </>
        }
      />
      <Tabs view={view} project={project} />
      <Bar view={view} total={total} vocabulary={vocabulary} cards={cards} onExport={() => path && exportAll(path, shown)} />
      {error ? <Failure error={error} /> : null}
      <List view={view} windows={windows} all={all.data} cards={cards} path={path} total={total} failed={Boolean(error)} />
    </>
  );
}

function SaveView({ view }: { view: ListView }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button icon={<Star />} onClick={() => setOpen(true)}>
        Save view
      </Button>
      {open && (
        <Dialog
          title="Save this view"
          text="Saves the query, columns, order and groups as a tab of this page, in this browser."
          onClose={() => setOpen(false)}
        >
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const called = String(new FormData(event.currentTarget).get("name")).trim();
              const search = new URLSearchParams(view.params);
              search.set("v", called);
              saveView({ name: called, search: search.toString() });
              view.set({ v: called });
              setOpen(false);
            }}
          >
            <TextField label="Name" name="name" required maxLength={40} defaultValue={view.params.get("v") ?? ""} />
            <DialogFoot onClose={() => setOpen(false)}>Save view</DialogFoot>
          </form>
        </Dialog>
      )}
    </>
  );
}

function Bar({
  view,
  vocabulary,
  cards,
  total = 0,
  onExport,
}: {
  view: ListView;
  vocabulary: Known;
  cards: ReturnType<typeof offered>;
  total?: number;
  onExport: () => Promise<void> | null;
}) {
  const parts = conditions(view.text);
  const tree = useMemo(() => {
    try {
      return parse(view.text);
    } catch {
      return empty();
    }
  }, [view.text]);
  const [busy, setBusy] = useState(false);
  const columnView = useColumnView(view);
  const named = view.params.get("v");
  const heated = columnView.shown.map(column).filter(heatable);
  const heat = (id: string) =>
    view.set({ heat: (view.heat.includes(id) ? view.heat.filter((other) => other !== id) : [...view.heat, id]).join(",") });
  const forget = (name: string) => {
    forgetView(name);
    view.set({ v: "" });
  };
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="toolbar query-bar">
        <QueryBox text={view.text} vocabulary={vocabulary} onChange={(q) => view.set({ q })} />
        <Popover label="Filter" text="Filter" icon={<ListFilter />} count={parts.length} wide>
          <FilterForm tree={tree} columns={cards} onChange={(next) => view.set({ q: format(next) })} />
        </Popover>
        <Menu
          label="Group"
          text={
            <>
              Group
              {view.group && <span className="d-only">: {GROUPS[view.group]?.name ?? view.group}</span>}
            </>
          }
          icon={<GroupIcon />}
          pressed={view.group ? true : undefined}
          items={[
            { name: "No groups", checked: !view.group, act: () => view.set({ g: "" }) },
            null,
            ...Object.entries(GROUPS).map(([id, grouping]) => ({
              name: `By ${grouping.name}`,
              checked: view.group === id,
              act: () => view.set({ g: id }),
            })),
          ]}
        />
        <ColumnPicker columns={cards} view={columnView} />
        <Menu
          label="View options"
          icon={<Ellipsis />}
          kind="plain"
          small={false}
          items={[
            { name: "Include archived", checked: view.archived, act: () => view.set({ a: view.archived ? "" : "1" }) },
            null,
            ...heated.map((column) => ({
              name: `Heat: ${column.head}`,
              checked: view.heat.includes(column.id),
              act: () => heat(column.id),
            })),
            null,
            {
              name: "Export CSV",
              not: busy ? "on its way" : "",
              act: () => {
                setBusy(true);
                void Promise.resolve(onExport()).finally(() => setBusy(false));
              },
            },
            ...(named ? [{ name: `Delete the view ${named}`, danger: true, act: () => forget(named) }] : []),
          ]}
        />
      </div>
      {(parts.length > 0 || view.heat.length > 0 || (view.group && total > GROUPED)) && (
        <div className="chips">
          {parts.map((condition, at) => (
            <Chip key={condition} onRemove={() => view.set({ q: without(view.text, at) })}>
              {condition}
            </Chip>
          ))}
          {view.heat.length > 0 && (
            <span className="ink3 sm">
              Heat: {view.heat.map((id) => column(id).head).join(", ")}
              {view.group && `, per ${GROUPS[view.group]?.name}`}
            </span>
          )}
          {view.group && total > GROUPED && <span className="ink3 sm">Groups of the first {GROUPED.toLocaleString("en")}</span>}
        </div>
      )}
    </div>
  );
}

function useColumnView(view: ListView): ColumnView & { shown: string[] } {
  const standard = defaultIn(useScreen());
  return {
    shown: view.shown ?? standard,
    widths: view.widths,
    setShown: (ids) => view.set({ c: ids?.join(",") ?? "" }),
    setWidth: (id, width) =>
      view.set({
        w: Object.entries({ ...view.widths, [id]: Math.round(width) })
          .map((entry) => entry.join(":"))
          .join(","),
      }),
  };
}

function List({
  view,
  windows,
  all,
  cards,
  path,
  total,
  failed,
}: {
  view: ListView;
  windows: ReturnType<typeof useWindows>;
  all: Found | undefined;
  cards: ReturnType<typeof offered>;
  path: ((offset: number, limit: number) => string) | null;
  total: number | undefined;
  failed: boolean;
}) {
  const navigate = useNavigate();
  const { items, moving, stopMoving } = useExperimentMenu();
  const [chosen, setChosen] = useState(new Map<number, Experiment>());
  const columnView = useColumnView(view);
  const courses = useCoursesInView(view, windows, all);
  const grouping = view.group ? GROUPS[view.group]?.of : undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `view` and `windows` are new objects with every render
  const columns = useMemo(() => {
    const ids = new Set([...cards.map((card) => card.id), ...columnView.shown]);
    return [...ids].map((id) => {
      const shown = column(id);
      if (id === "course") return { ...shown, cell: (row: Row) => shown.cell({ ...row, course: courses.get(row.experiment.id) }) };
      if (view.heat.includes(id)) return { ...shown, heat: heatOf(id, all?.experiments ?? [...windows.rows.values()], grouping) };
      return shown;
    });
  }, [cards, columnView.shown, courses, String(view.heat), grouping, all, view.heat.length ? windows.rows : null]);
  const here = useMemo(
    () => new Map((all?.experiments ?? [...windows.rows.values()]).map((row) => [row.experiment.id, row.experiment])),
    [all, windows.rows],
  );
  // Selected experiments in their current state, if it is known.
  const chosenNow = [...chosen.values()].map((experiment) => here.get(experiment.id) ?? experiment);
  const [comparing, setComparing] = useState(false);
  const compare = () => {
    if (chosen.size > MOST_BESIDE) navigate(comparePage({ experiments: [...chosen.keys()] }));
    else setComparing(chosen.size > 0);
  };
  useKey({ c: compare });
  const everything = async () => {
    if (chosen.size || !path) return setChosen(new Map());
    const matching = await get<Found>(path(0, MOST_CHOSEN));
    setChosen(new Map(matching.experiments.map(({ experiment }) => [experiment.id, experiment])));
  };
  if (total === undefined)
    return failed ? null : (
      <section className="card">
        <Loading />
      </section>
    );
  if (total === 0)
    return failed ? null : (
      <section className="card">
        <Empty
          icon={<FlaskConical className="l" />}
          title={view.text ? "No experiments match this query" : "No experiments yet"}
          command={view.text ? undefined : "det experiment create config.yaml ."}
        >
          {view.text ? "Remove a condition, or include archived experiments." : "Submit one and watch it here."}
        </Empty>
      </section>
    );
  return (
    <>
      <Table
        name="Experiments"
        rows={view.group ? (all?.experiments ?? []) : windows.source}
        id={(row) => row.experiment.id}
        called={(row) => `experiment ${row.experiment.id}`}
        columns={columns}
        view={columnView}
        sorts={view.sorts}
        onSort={(sorts) => view.set({ s: sortText(sorts) })}
        group={grouping}
        groupHead={groupHead}
        actions={(row) => items(row.experiment)}
        selected={new Set(chosen.keys())}
        onSelect={(ids) =>
          setChosen(
            new Map(
              [...ids].flatMap((id) =>
                (here.get(Number(id)) ?? chosen.get(Number(id))) ? [[Number(id), (here.get(Number(id)) ?? chosen.get(Number(id)))!]] : [],
              ),
            ),
          )
        }
        onAll={() => void everything()}
        fill={total > 20}
      />
      <Selection chosen={chosenNow} onNone={() => setChosen(new Map())} onCompare={compare} onShow={(q) => view.set({ q, a: "1" })} />
      {comparing && chosen.size > 0 && (
        <Suspense>
          <CompareDrawer experiments={[...chosen.keys()]} onClose={() => setComparing(false)} />
        </Suspense>
      )}
      {moving && <MoveDialog ids={[moving.id]} from={moving.projectId} onClose={stopMoving} />}
    </>
  );
}

/** Metric histories of the experiments in view, while that column is shown. */
function useCoursesInView(view: ListView, windows: ReturnType<typeof useWindows>, all: Found | undefined) {
  const wanted = useColumnView(view).shown.includes("course");
  const [from, to] = windows.inView;
  const rows = view.group
    ? (all?.experiments ?? [])
    : [...windows.rows].filter(([at]) => at >= from && at < Math.min(to, from + 60)).map(([, row]) => row);
  return useCourses(wanted ? rows : []);
}
