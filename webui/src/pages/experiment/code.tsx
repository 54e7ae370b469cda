import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";

import { highlighted } from "../../code/highlight";
import { useData } from "../../api/data";
import { type FileNode, files, fileText } from "../../code/files";
import type { Experiment } from "../../api/types";
import { Card, Empty, Failure, Loaded } from "../../parts/basics";
import { save } from "../../parts/file";
import { size } from "../../parts/format";
import { Difference } from "./difference";

const CONFIG = " effective configuration";
const SUBMITTED = " submitted configuration";
const DIFFERENCE = " difference to another experiment";

export function Code({ one }: { one: Experiment }) {
  const [params, setParams] = useSearchParams();
  const path = params.get("file") ?? SUBMITTED;
  const open = (name: string) =>
    setParams(
      (before) => {
        before.set("file", name);
        return before;
      },
      { replace: true },
    );
  const tree = useData<{ files: FileNode[] }>(`experiments/${one.id}/file_tree`);
  const file = useQuery({ queryKey: ["file", one.id, path], queryFn: () => fileText(one.id, path), enabled: !path.startsWith(" ") });
  const shown = path === CONFIG ? JSON.stringify(one.config, null, 2) : path === SUBMITTED ? one.originalConfig : file.data;
  const name = path === CONFIG ? "config.json" : path === SUBMITTED ? "config.yaml" : path.split("/").at(-1)!;
  return (
    <Card title="Code" more={<a href={`/experiments/${one.id}/model_def`}>Download all</a>}>
      <div className="code">
        <nav aria-label="Files">
          <ul className="plain">
            {[SUBMITTED, CONFIG, DIFFERENCE].map((special) => (
              <li key={special}>
                <button type="button" className="link" aria-current={path === special} onClick={() => open(special)}>
                  {special.trim()}
                </button>
              </li>
            ))}
          </ul>
          <Loaded found={tree}>{({ files }) => <Files files={files} path={path} onOpen={open} />}</Loaded>
          {tree.data && <Search id={one.id} tree={tree.data.files} onOpen={open} />}
        </nav>
        {path === DIFFERENCE ? (
          <Difference one={one} />
        ) : file.error ? (
          <Failure error={file.error} />
        ) : shown === undefined ? (
          <Empty>Choose a file.</Empty>
        ) : (
          <section className="file">
            <p className="actions">
              <strong>{path.trim()}</strong>
              <button type="button" onClick={() => save(name, shown, "text/plain")}>
                Download
              </button>
            </p>
            <pre tabIndex={0} role="region" aria-label={path.trim()}>
              {highlighted(shown)}
            </pre>
          </section>
        )}
      </div>
    </Card>
  );
}

function Files({ files, path, onOpen }: { files: FileNode[]; path: string; onOpen: (path: string) => void }) {
  return (
    <ul className="plain">
      {files.map((one) => (
        <li key={one.path}>
          {one.isDir ? (
            <details open>
              <summary>{one.name}/</summary>
              <Files files={one.files} path={path} onOpen={onOpen} />
            </details>
          ) : (
            <button
              type="button"
              className="link"
              title={size(one.contentLength)}
              aria-current={path === one.path}
              onClick={() => onOpen(one.path)}
            >
              {one.name}
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

interface Hit {
  path: string;
  line: number;
  text: string;
}
const MOST_HITS = 100;

/** Looks for a text in all files that can be shown. */
function Search({ id, tree, onOpen }: { id: number; tree: FileNode[]; onOpen: (path: string) => void }) {
  const [wanted, setWanted] = useState("");
  const found = useQuery({
    queryKey: ["search files", id, wanted],
    enabled: wanted !== "",
    queryFn: async () => {
      const hits: Hit[] = [];
      for (const file of files(tree)) {
        const text = await fileText(id, file.path);
        text
          .split("\n")
          .forEach(
            (line, at) =>
              line.toLowerCase().includes(wanted.toLowerCase()) && hits.push({ path: file.path, line: at + 1, text: line.trim() }),
          );
        if (hits.length > MOST_HITS) break;
      }
      return hits.slice(0, MOST_HITS);
    },
  });
  const look = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setWanted(String(new FormData(event.currentTarget).get("text")));
  };
  return (
    <form onSubmit={look}>
      <label>
        Search in files
        <input type="search" name="text" />
      </label>
      {found.error ? <Failure error={found.error} /> : null}
      {wanted && found.data && (
        <ul className="plain" aria-live="polite">
          {found.data.map((hit) => (
            <li key={`${hit.path}:${hit.line}`}>
              <button type="button" className="link" onClick={() => onOpen(hit.path)} title={hit.text}>
                {hit.path}:{hit.line}
              </button>{" "}
              <code>{hit.text.slice(0, 60)}</code>
            </li>
          ))}
          {!found.data.length && <li>Nowhere.</li>}
        </ul>
      )}
    </form>
  );
}
