/** Where the code of a new experiment comes from: a folder, an archive, an earlier experiment. */

import { FileArchive, FolderOpen } from "lucide-react";
import { type ChangeEvent, useRef, useState } from "react";

import { useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import { many, size } from "../../parts/format";
import { Button, Segments } from "../../ui/button";
import { Field } from "../../ui/field";
import { Failure } from "../../ui/status";
import { unpack, type Packed } from "./archive";
import { chosen, MOST_BYTES } from "./code";

export type From = "folder" | "archive" | "earlier";

export interface Code {
  from: From;
  files: Packed[];
  parent: number | null;
}

const bytesOf = async (file: File) => new Uint8Array(await file.arrayBuffer());
const SHOWN = 8;

export function Source({ code, onChange, onParent }: { code: Code; onChange: (code: Code) => void; onParent: (id: number) => void }) {
  const [error, setError] = useState<unknown>(null);
  const input = useRef<HTMLInputElement>(null);
  const take = async (event: ChangeEvent<HTMLInputElement>) => {
    setError(null);
    const given = [...(event.target.files ?? [])];
    try {
      const packed =
        code.from === "archive"
          ? (await Promise.all(given.map(async (file) => unpack(file.name, await bytesOf(file))))).flat()
          : await Promise.all(given.map(async (file) => ({ path: file.webkitRelativePath || file.name, bytes: await bytesOf(file) })));
      const files = chosen(packed);
      const whole = files.reduce((sum, file) => sum + file.bytes.length, 0);
      if (!files.length) throw new Error("It contains no files to upload.");
      if (whole > MOST_BYTES)
        throw new Error(`It has ${size(whole)}; the limit is ${size(MOST_BYTES)}. List files to leave out in .detignore.`);
      onChange({ ...code, files });
    } catch (failure) {
      setError(failure);
    }
  };
  const isFolder = code.from === "folder";
  return (
    <div className="stack">
      <Segments
        name="Code from"
        value={code.from}
        options={[
          ["folder", "A folder"],
          ["archive", "An archive"],
          ["earlier", "An earlier experiment"],
        ]}
        onChange={(from) => onChange({ from, files: [], parent: null })}
      />
      {code.from === "earlier" ? (
        <Earlier parent={code.parent} onParent={onParent} />
      ) : (
        <div>
          {/* Choosing folders needs an attribute that React does not know. */}
          <input
            key={code.from}
            ref={input}
            type="file"
            className="vh"
            tabIndex={-1}
            aria-label={isFolder ? "Folder with the code" : "Archive with the code"}
            accept={isFolder ? undefined : ".zip,.tar,.tgz,.gz"}
            multiple={isFolder}
            {...(isFolder ? { webkitdirectory: "" } : {})}
            onChange={(event) => void take(event)}
          />
          <Button icon={isFolder ? <FolderOpen /> : <FileArchive />} onClick={() => input.current?.click()}>
            {isFolder ? "Select a folder" : "Select an archive"}
          </Button>
          <p className="hint">
            {isFolder
              ? "Files matched by .detignore, and caches, are not uploaded."
              : ".tar, .tar.gz, .tgz or .zip; it is unpacked in the browser."}
          </p>
        </div>
      )}
      {error ? <Failure error={error} /> : null}
      {code.files.length > 0 && <Sent files={code.files} />}
    </div>
  );
}

function Sent({ files }: { files: Packed[] }) {
  const whole = files.reduce((sum, file) => sum + file.bytes.length, 0);
  return (
    <div role="status">
      <p className="m">
        {many(files.length, "file")}, {size(whole)}
      </p>
      <ul className="sm ink2 sent">
        {files.slice(0, SHOWN).map((file) => (
          <li key={file.path} className="mono cut" title={file.path}>
            {file.path}
          </li>
        ))}
      </ul>
      {files.length > SHOWN && <p className="sm ink3">and {files.length - SHOWN} more</p>}
    </div>
  );
}

function Earlier({ parent, onParent }: { parent: number | null; onParent: (id: number) => void }) {
  const answer = useData<{ experiments: Experiment[] }>("experiments?limit=100&orderBy=ORDER_BY_DESC&sortBy=SORT_BY_ID&lean=true", [
    "experiments",
  ]);
  return (
    <Field label="Experiment" hint="Uses its code, and its configuration as submitted.">
      {({ "aria-invalid": _, ...wired }) => (
        <select className="sel wide" {...wired} value={parent ?? ""} onChange={(event) => onParent(Number(event.target.value))}>
          <option value="">Choose one</option>
          {parent && !answer.data?.experiments.some((experiment) => experiment.id === parent) && <option value={parent}>{parent}</option>}
          {answer.data?.experiments.map((experiment) => (
            <option key={experiment.id} value={experiment.id}>
              {experiment.id} {experiment.name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
