import { useQuery } from "@tanstack/react-query";
import { Download, File, FileDiff, FileText, Folder } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";

import { useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import "../../code/code.css";
import { languageOf } from "../../code/colours";
import { type FileNode, files, fileText, meant } from "../../code/files";
import { Shown } from "../../code/shown";
import { asYaml } from "../../code/yaml";
import { save } from "../../parts/file";
import { size } from "../../parts/format";
import { IconButton, LinkButton, Segments } from "../../ui/button";
import { Card } from "../../ui/card";
import { Empty, Failure, Loaded, Loading } from "../../ui/status";
import { Difference } from "./difference";

const SUBMITTED = " submitted configuration";
const EFFECTIVE = " effective configuration";
const DIFFERENCE = " difference to another experiment";
const VIEWS = [
  [SUBMITTED, "Submitted"],
  [EFFECTIVE, "Effective"],
  [DIFFERENCE, "Difference"],
] as const;

/**
 * What ran: the files, the configuration as submitted and with all defaults, and the differences from another
 * experiment.
 */
export function Code({ experiment }: { experiment: Experiment }) {
  const [params, setParams] = useSearchParams();
  const open = (name: string, at?: number) =>
    setParams(
      (before) => {
        before.set("file", name);
        if (at) before.set("at", String(at));
        else before.delete("at");
        return before;
      },
      { replace: true },
    );
  const tree = useData<{ files: FileNode[] }>(experiment.unmanaged ? null : `experiments/${experiment.id}/file_tree`);
  const asked = params.get("file") ?? SUBMITTED;
  const isFile = !asked.startsWith(" ");
  const path = isFile && tree.data ? meant(tree.data.files, asked) : asked;
  return (
    <Card
      title="Code"
      flush
      more={
        experiment.unmanaged ? undefined : (
          <LinkButton small kind="ghost" icon={<Download />} href={`/experiments/${experiment.id}/model_def`}>
            Download all
          </LinkButton>
        )
      }
    >
      <div className="files">
        <nav aria-label="Files">
          <h3>Configuration</h3>
          <ul>
            {VIEWS.map(([id, words]) => (
              <li key={id}>
                <button type="button" aria-current={path === id} onClick={() => open(id)}>
                  {id === DIFFERENCE ? <FileDiff className="s" /> : <FileText className="s" />} {words}
                </button>
              </li>
            ))}
          </ul>
          {!experiment.unmanaged && (
            <>
              <h3>Files</h3>
              <Loaded answer={tree}>{({ files }) => <Tree files={files} path={path} onOpen={open} />}</Loaded>
              {tree.data && <Search id={experiment.id} tree={tree.data.files} onOpen={open} />}
            </>
          )}
        </nav>
        {path === DIFFERENCE ? (
          <Difference experiment={experiment} />
        ) : isFile ? (
          <Loaded answer={tree}>{() => <OneFile key={path} id={experiment.id} path={path} at={Number(params.get("at") ?? 0)} />}</Loaded>
        ) : (
          <Text
            name={path === SUBMITTED ? "submitted configuration" : "effective configuration"}
            file="config.yaml"
            text={path === SUBMITTED ? asYaml(experiment.originalConfig) : asYaml(experiment.config)}
            view={path}
            onView={open}
          />
        )}
      </div>
    </Card>
  );
}

function OneFile({ id, path, at }: { id: number; path: string; at: number }) {
  const file = useQuery({ queryKey: ["file", id, path], queryFn: () => fileText(id, path), retry: false });
  if (file.error) return <Failure error={file.error} />;
  if (file.data === undefined) return <Loading />;
  return <Text name={path} file={path.split("/").at(-1)!} text={file.data} at={at} />;
}

interface TextProps {
  name: string;
  file: string;
  text: string;
  at?: number;
  view?: string;
  onView?: (view: string) => void;
}

function Text({ name, file, text, at, view, onView }: TextProps) {
  return (
    <section>
      <div className="fhead">
        <span className="mono cut" title={name}>
          {name}
        </span>
        {view && onView && <Segments small name="Configuration" value={view} options={VIEWS} onChange={onView} />}
        <span className="sm ink3 nowrap">{size(new Blob([text]).size)}</span>
        <IconButton icon={<Download />} label="Download" onClick={() => save(file, text, "text/plain")} />
      </div>
      <Shown text={text} language={languageOf(file)} label={name} at={at} />
    </section>
  );
}

function Tree({ files, path, onOpen }: { files: FileNode[]; path: string; onOpen: (path: string) => void }) {
  return (
    <ul>
      {files.map((file) => (
        <li key={file.path}>
          {file.isDir ? (
            <details open>
              <summary>
                <Folder className="s" /> <span className="cut">{file.name}</span>
              </summary>
              <Tree files={file.files} path={path} onOpen={onOpen} />
            </details>
          ) : (
            <button
              type="button"
              title={`${file.path}, ${size(file.contentLength)}`}
              aria-current={path === file.path}
              onClick={() => onOpen(file.path)}
            >
              <File className="s" /> <span className="cut">{file.name}</span>
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

/** Searches all text files. */
function Search({ id, tree, onOpen }: { id: number; tree: FileNode[]; onOpen: (path: string, at: number) => void }) {
  const [wanted, setWanted] = useState("");
  const answer = useQuery({
    queryKey: ["search files", id, wanted],
    enabled: wanted !== "",
    queryFn: async () => {
      const hits: Hit[] = [];
      for (const file of files(tree)) {
        const lines = (await fileText(id, file.path)).split("\n");
        for (const [at, line] of lines.entries())
          if (line.toLowerCase().includes(wanted.toLowerCase())) hits.push({ path: file.path, line: at + 1, text: line.trim() });
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
      <span className="field s">
        <input type="search" name="text" aria-label="Search in files" placeholder="Search in files" />
      </span>
      {answer.error ? <Failure error={answer.error} /> : null}
      {wanted && answer.data && (
        <ul aria-live="polite">
          {answer.data.map((hit) => (
            <li key={`${hit.path}:${hit.line}`}>
              <button type="button" onClick={() => onOpen(hit.path, hit.line)} title={hit.text}>
                <span className="cut">
                  {hit.path}:{hit.line} <code className="ink3">{hit.text.slice(0, 60)}</code>
                </span>
              </button>
            </li>
          ))}
          {!answer.data.length && <Empty>Nowhere.</Empty>}
        </ul>
      )}
    </form>
  );
}
