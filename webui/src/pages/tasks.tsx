import { Link, useParams } from "react-router";

import { useChange, useData } from "../api/data";
import { Card, Empty, Failure, Loaded, State, Time } from "../parts/basics";
import { Logs } from "../parts/logs";

interface Task {
  id: string;
  description: string;
  state: string;
  startTime: string;
  username: string;
  exitStatus: string;
  serviceAddress?: string;
}

export function Tasks() {
  const commands = useData<{ commands: Task[] }>("commands?orderBy=ORDER_BY_DESC", ["tasks", "cluster"]);
  const boards = useData<{ tensorboards: Task[] }>("tensorboards?orderBy=ORDER_BY_DESC", ["tasks", "cluster"]);
  return (
    <>
      <h1>Tasks</h1>
      <Card title="Commands">
        <Loaded found={commands}>{({ commands }) => <List noun="commands" rows={commands} command="det cmd run nvidia-smi" />}</Loaded>
      </Card>
      <Card title="TensorBoards">
        <Loaded found={boards}>
          {({ tensorboards }) => <List noun="tensorboards" rows={tensorboards} command="det tensorboard start 1" />}
        </Loaded>
      </Card>
    </>
  );
}

function List({ noun, rows, command }: { noun: string; rows: Task[]; command: string }) {
  const change = useChange();
  if (!rows.length) return <Empty command={command}>None was started.</Empty>;
  return (
    <>
      {change.error ? <Failure error={change.error} /> : null}
      <table>
        <tbody>
          {rows.map((one) => (
            <tr key={one.id}>
              <td>
                <Link to={`/${noun}/${one.id}/logs`}>{one.description}</Link>
              </td>
              <td>
                <State state={one.state} why={one.exitStatus} />
              </td>
              <td className="wide">{one.exitStatus}</td>
              <td>
                <Time at={one.startTime} />
              </td>
              <td>{one.username}</td>
              <td className="actions">
                {one.serviceAddress && <a href={one.serviceAddress}>Open</a>}
                <button
                  type="button"
                  disabled={one.state === "STATE_TERMINATED"}
                  onClick={() => change.mutate({ method: "POST", path: `${noun}/${one.id}/kill` })}
                >
                  Kill
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

export function TaskLogs() {
  const { id = "" } = useParams();
  return (
    <>
      <h1>Task {id}</h1>
      <Logs source={`tasks/${id}`} command={`det task logs ${id}`} />
    </>
  );
}
