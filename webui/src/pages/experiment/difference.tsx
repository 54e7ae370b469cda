import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "react-router";

import { get } from "../../api/client";
import { fields, lines, short } from "../../code/changes";
import { type FileNode, files, fileText } from "../../code/files";
import type { Experiment } from "../../api/types";
import { flat } from "../../parts/format";
import { Fold } from "../../ui/card";
import { NumberField } from "../../ui/field";
import { Empty, Failure, Loading } from "../../ui/status";

interface Changed {
  path: string;
  before: string | null;
  after: string | null;
}

async function changedFiles(before: number, after: number): Promise<Changed[]> {
  const [old, fresh] = await Promise.all(
    [before, after].map(
      async (id) =>
        new Map(files((await get<{ files: FileNode[] }>(`experiments/${id}/file_tree`)).files).map((file) => [file.path, file])),
    ),
  );
  const paths = [...new Set([...old!.keys(), ...fresh!.keys()])].sort();
  const changes: Changed[] = [];
  for (const path of paths) {
    const [was, is] = await Promise.all([old!.has(path) ? fileText(before, path) : null, fresh!.has(path) ? fileText(after, path) : null]);
    if (was !== is) changes.push({ path, before: was, after: is });
  }
  return changes;
}

/** Differences from the experiment that this one was forked from, or from any other: the configuration first. */
export function Difference({ experiment }: { experiment: Experiment }) {
  const [params, setParams] = useSearchParams();
  const other = Number(params.get("with") ?? experiment.forkedFrom ?? 0);
  const answer = useQuery({
    queryKey: ["difference", experiment.id, other],
    enabled: other > 0 && other !== experiment.id,
    queryFn: async () => ({
      before: (await get<{ experiment: Experiment }>(`experiments/${other}`)).experiment,
      changed: await changedFiles(other, experiment.id),
    }),
  });
  const compare = (id: string) =>
    setParams(
      (before) => {
        before.set("with", id);
        return before;
      },
      { replace: true },
    );
  return (
    <section aria-label="difference to another experiment">
      <form className="difference" onSubmit={(event) => event.preventDefault()}>
        <NumberField label="Compared with experiment" min={1} value={String(other || "")} onChange={compare} />
      </form>
      {answer.error ? <Failure error={answer.error} /> : null}
      {!other && <Empty>This experiment was not forked. Choose one to compare it with.</Empty>}
      {answer.isLoading && <Loading />}
      {answer.data && <Shown experiment={experiment} before={answer.data.before} changed={answer.data.changed} />}
    </section>
  );
}

const value = (field: unknown) => (field === undefined ? "" : JSON.stringify(field));
const SIGNS = { add: "+", del: "\u2212", same: "", gap: "" };

function Shown({ experiment, before, changed }: { experiment: Experiment; before: Experiment; changed: Changed[] }) {
  const differing = fields(flat(before.config), flat(experiment.config));
  return (
    <div className="stack difference">
      <h3>Configuration</h3>
      {differing.length ? (
        <div className="tw">
          <table aria-label="Differing fields" className="pairs">
            <thead>
              <tr>
                <th>Field</th>
                <th>Experiment {before.id}</th>
                <th>Experiment {experiment.id}</th>
              </tr>
            </thead>
            <tbody>
              {differing.map(([name, was, is]) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>
                    <code>{value(was)}</code>
                  </td>
                  <td>
                    <code>{value(is)}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p>Nothing differs.</p>
      )}
      <h3>Files</h3>
      {!changed.length && <p>Nothing differs.</p>}
      {changed.map((file) => (
        <Fold
          key={file.path}
          open
          title={`${file.path} ${file.before === null ? "(only here)" : file.after === null ? "(only there)" : ""}`}
        >
          <div className="source plain">
            {short(lines(file.before ?? "", file.after ?? "")).map((line, at) => (
              <div key={at} className={`ln ${line.kind}`} data-sign={SIGNS[line.kind]}>
                <span>
                  {line.kind !== "same" && line.kind !== "gap" && <span className="vh">{line.kind === "add" ? "added " : "removed "}</span>}
                  {line.text}
                </span>
              </div>
            ))}
          </div>
        </Fold>
      ))}
    </div>
  );
}
