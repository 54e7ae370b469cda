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
      async (id) => new Map(files((await get<{ files: FileNode[] }>(`experiments/${id}/file_tree`)).files).map((one) => [one.path, one])),
    ),
  );
  const paths = [...new Set([...old!.keys(), ...fresh!.keys()])].sort();
  const found: Changed[] = [];
  for (const path of paths) {
    const [was, is] = await Promise.all([old!.has(path) ? fileText(before, path) : null, fresh!.has(path) ? fileText(after, path) : null]);
    if (was !== is) found.push({ path, before: was, after: is });
  }
  return found;
}

/** Differences from the experiment that this one was forked from, or from any other: the configuration first. */
export function Difference({ one }: { one: Experiment }) {
  const [params, setParams] = useSearchParams();
  const other = Number(params.get("with") ?? one.forkedFrom ?? 0);
  const found = useQuery({
    queryKey: ["difference", one.id, other],
    enabled: other > 0 && other !== one.id,
    queryFn: async () => ({
      before: (await get<{ experiment: Experiment }>(`experiments/${other}`)).experiment,
      changed: await changedFiles(other, one.id),
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
      {found.error ? <Failure error={found.error} /> : null}
      {!other && <Empty>This experiment was not forked. Choose one to compare it with.</Empty>}
      {found.isLoading && <Loading />}
      {found.data && <Shown one={one} before={found.data.before} changed={found.data.changed} />}
    </section>
  );
}

const value = (one: unknown) => (one === undefined ? "" : JSON.stringify(one));
const SIGNS = { add: "+", del: "\u2212", same: "", gap: "" };

function Shown({ one, before, changed }: { one: Experiment; before: Experiment; changed: Changed[] }) {
  const differing = fields(flat(before.config), flat(one.config));
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
                <th>Experiment {one.id}</th>
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
