import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { send } from "../../api/client";
import { useData } from "../../api/data";
import type { Experiment } from "../../api/types";
import { Card, Empty, Failure, Loaded } from "../../parts/basics";
import { size } from "../../parts/format";

interface Node {
  path: string;
  name: string;
  isDir: boolean;
  contentLength: number;
  files: Node[];
}
const CONFIG = " effective configuration";
const SUBMITTED = " submitted configuration";

const text = (base64: string) => new TextDecoder().decode(Uint8Array.from(atob(base64), (one) => one.charCodeAt(0)));

export function Code({ one }: { one: Experiment }) {
  const tree = useData<{ files: Node[] }>(`experiments/${one.id}/file_tree`);
  const [path, setPath] = useState(SUBMITTED);
  const file = useQuery({
    queryKey: ["file", one.id, path],
    queryFn: async () => text((await send<{ file: string }>("POST", `experiments/${one.id}/file`, { path })).file),
    enabled: !path.startsWith(" "),
  });
  const shown = path === CONFIG ? JSON.stringify(one.config, null, 2) : path === SUBMITTED ? one.originalConfig : file.data;
  return (
    <Card title="Code" more={<a href={`/experiments/${one.id}/model_def`}>Download all</a>}>
      <div className="code">
        <nav aria-label="Files">
          <ul className="plain">
            {[SUBMITTED, CONFIG].map((name) => (
              <li key={name}>
                <button type="button" className="link" aria-current={path === name} onClick={() => setPath(name)}>
                  {name.trim()}
                </button>
              </li>
            ))}
          </ul>
          <Loaded found={tree}>{({ files }) => <Files files={files} path={path} onOpen={setPath} />}</Loaded>
        </nav>
        {file.error ? <Failure error={file.error} /> : shown === undefined ? <Empty>Choose a file.</Empty> : <pre tabIndex={0}>{shown}</pre>}
      </div>
    </Card>
  );
}

function Files({ files, path, onOpen }: { files: Node[]; path: string; onOpen: (path: string) => void }) {
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
            <button type="button" className="link" title={size(one.contentLength)} aria-current={path === one.path} onClick={() => onOpen(one.path)}>
              {one.name}
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
