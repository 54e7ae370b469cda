import { FlaskConical } from "lucide-react";
import { useMemo } from "react";
import { Link, useSearchParams } from "react-router";

import { query } from "../../api/client";
import { useData, useMe } from "../../api/data";
import type { Pagination } from "../../api/types";
import { useExperimentMenu } from "../../lists/acts";
import { column, type Row } from "../../lists/columns";
import { useCourses } from "../../lists/course";
import { MoveDialog } from "../../lists/move";
import { NewExperiment } from "../../lists/new";
import { field, filterOf, type Node } from "../../lists/query";
import { Segments } from "../../ui/button";
import { Card } from "../../ui/card";
import { useScreen } from "../../ui/media";
import { PageHead, usePlace } from "../../ui/page";
import { Empty, Loaded } from "../../ui/status";
import { type Column, Table } from "../../ui/table";
import { Failures } from "./failures";
import { Answer } from "./figures";
import { FirstSteps } from "./first";
import { Since } from "./since";
import { timeOf } from "./time";
import "./dashboard.css";

export interface Found {
  experiments: Row[];
  pagination: Pagination;
}

const SHOWN = 15;
const REST_MS = 1000;

export const search = (children: Node[], sort: string, limit: number) =>
  `experiments-search${query({ lean: true, filter: filterOf({ kind: "group", conjunction: "and", children }, false), sort, limit })}`;

function greeting(name: string): string {
  const hour = new Date().getHours();
  return `Good ${hour < 5 || hour >= 18 ? "evening" : hour < 12 ? "morning" : "afternoon"}, ${name}`;
}

export function Dashboard() {
  usePlace({ crumbs: [{ name: "Dashboard" }] });
  const me = useMe();
  const [params, setParams] = useSearchParams();
  const mine = params.get("by") === "me";
  const name = me.data?.user.username ?? "";
  const own = useMemo(() => (mine ? [field("user", "=", name)] : []), [mine, name]);
  const recent = useData<Found>(search(own, "id=desc", SHOWN), ["experiments"], true, REST_MS);
  return (
    <>
      <PageHead
        title={
          <>
            <span className="vh">Dashboard. </span>
            {greeting(me.data?.user.displayName || name)}
          </>
        }
        facts={[<Since key="since" user={name} />]}
        actions={
          <>
            <span className="d-only">
              <Segments
                name="Whose"
                value={mine ? "me" : "all"}
                options={[
                  ["me", "Mine"],
                  ["all", "Everyone"],
                ]}
                onChange={(value) => setParams(value === "me" ? { by: "me" } : {}, { replace: true })}
              />
            </span>
            <NewExperiment />
          </>
        }
      />
      <Answer user={name} />
      <Failures own={own} />
      <Card
        title={mine ? "My recent experiments" : "Recent experiments"}
        flush
        more={
          <Link className="link" to={mine ? `/experiments?q=user%3A${encodeURIComponent(name)}` : "/experiments"}>
            All {recent.data?.pagination.total.toLocaleString("en")}
          </Link>
        }
      >
        <Loaded answer={recent}>
          {({ experiments }) =>
            experiments.length ? (
              <Recent rows={experiments} />
            ) : mine ? (
              <Empty
                icon={<FlaskConical className="l" />}
                title="You have not submitted anything yet"
                command="det experiment create config.yaml ."
              >
                Your experiments appear here. Everyone shows those of other users.
              </Empty>
            ) : (
              <FirstSteps />
            )
          }
        </Loaded>
      </Card>
    </>
  );
}

const TIME: Column<Row> = {
  id: "time",
  head: "Time",
  width: 140,
  cell: (row) => <span className="cut ink2">{timeOf(row.experiment)}</span>,
};

function Recent({ rows }: { rows: Row[] }) {
  const courses = useCourses(rows);
  const { items, moving, stopMoving } = useExperimentMenu();
  const small = useScreen() === "small";
  const columns = useMemo(() => {
    const course = column("course");
    return [
      column("id"),
      column("name"),
      ...(small ? [] : [column("projectId")]),
      column("state"),
      column("progress"),
      column("numTrials"),
      { ...course, cell: (row: Row) => course.cell({ ...row, course: courses.get(row.experiment.id) }) },
      column("searcherMetricsVal"),
      TIME,
      column("user"),
    ];
  }, [courses, small]);
  return (
    <>
      <Table
        name="Recent experiments"
        rows={rows}
        id={(row) => row.experiment.id}
        called={(row) => `experiment ${row.experiment.id}`}
        columns={columns}
        actions={(row) => items(row.experiment)}
      />
      {moving && <MoveDialog ids={[moving.id]} from={moving.projectId} onClose={stopMoving} />}
    </>
  );
}
