import { useState } from "react";

import { useChange, useData } from "../../api/data";
import type { Checkpoint } from "../../api/types";
import { type Asked, Card, Confirm, Copyable, Empty, Failure, Loaded, State, Time, TrialLink } from "../../parts/basics";
import { number, size } from "../../parts/format";

export function Checkpoints({ of, topics }: { of: string; topics: string[] }) {
  const found = useData<{ checkpoints: Checkpoint[] }>(`${of}/checkpoints?sortBy=SORT_BY_END_TIME&orderBy=ORDER_BY_DESC`, topics);
  const [open, setOpen] = useState<string | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const change = useChange();
  const remove = (uuid: string) =>
    setAsked({
      title: "Delete this checkpoint?",
      text: `${uuid} is deleted for ever, with all of its files.`,
      verb: "Delete",
      act: () => change.mutate({ method: "DELETE", path: "checkpoints", body: { checkpointUuids: [uuid] } }),
    });
  return (
    <Card>
      <Confirm asked={asked} onClose={() => setAsked(null)} />
      {change.error ? <Failure error={change.error} /> : null}
      <Loaded found={found}>
        {({ checkpoints }) =>
          checkpoints.length ? (
            <div className="scroll">
              <table aria-label="Checkpoints">
                <thead>
                  <tr>
                    <th>Checkpoint</th>
                    <th className="num">Trial</th>
                    <th className="num">Batches</th>
                    <th className="num">Metric</th>
                    <th>State</th>
                    <th className="num">Size</th>
                    <th>Stored</th>
                    <th>
                      <span className="hidden">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {checkpoints.map((one) => (
                    <Row key={one.uuid} one={one} open={open === one.uuid} onOpen={() => setOpen(open === one.uuid ? null : one.uuid)} onRemove={() => remove(one.uuid)} />
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty>No checkpoint yet. A script stores them with core_context.checkpoint.</Empty>
          )
        }
      </Loaded>
    </Card>
  );
}

function Row({ one, open, onOpen, onRemove }: { one: Checkpoint; open: boolean; onOpen: () => void; onRemove: () => void }) {
  const total = Object.values(one.resources).reduce((sum, bytes) => sum + Number(bytes), 0);
  const there = one.state === "STATE_COMPLETED" || one.state === "STATE_PARTIALLY_DELETED";
  return (
    <>
      <tr>
        <td>
          <button type="button" className="link" aria-expanded={open} onClick={onOpen}>
            <code>{one.uuid.slice(0, 8)}</code>
          </button>
        </td>
        <td className="num">{one.training && <TrialLink experiment={one.training.experimentId} id={one.training.trialId} />}</td>
        <td className="num">{number(one.metadata.steps_completed)}</td>
        <td className="num">{number(one.training?.searcherMetric)}</td>
        <td>
          <State state={one.state} />
        </td>
        <td className="num">{size(total)}</td>
        <td>
          <Time at={one.reportTime} />
        </td>
        <td className="actions">
          {there && <a href={`/checkpoints/${one.uuid}`}>Download</a>}
          <button type="button" disabled={!there} onClick={onRemove}>
            Delete
          </button>
        </td>
      </tr>
      {open && (
        <tr>
          <td colSpan={8}>
            <Copyable text={one.uuid} />
            <Copyable text={`client.get_checkpoint("${one.uuid}").download()`} />
            <pre>{JSON.stringify(one.metadata, null, 2)}</pre>
            <ul className="plain">
              {Object.entries(one.resources).map(([path, bytes]) => (
                <li key={path}>
                  <code>{path}</code> <span className="soft">{size(bytes)}</span>
                </li>
              ))}
            </ul>
          </td>
        </tr>
      )}
    </>
  );
}
