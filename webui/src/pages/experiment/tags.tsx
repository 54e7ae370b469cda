/**
 * The tags of an experiment: a cross removes one, typing a name adds one, and tags already in use are suggested first.
 */

import { Plus } from "lucide-react";
import { useState } from "react";

import { useData } from "../../api/data";
import { useRights } from "../../api/rights";
import type { Experiment } from "../../api/types";
import { Button } from "../../ui/button";
import { TextField } from "../../ui/field";
import { Popover } from "../../ui/menu";
import { Chip } from "../../ui/text";
import { useAct } from "../settings/change";

const OFFERED = 12;

export function EditTags({ experiment }: { experiment: Experiment }) {
  const not = useRights()("edit", experiment);
  return (
    <Popover label="Edit tags" icon={<Plus />} text={experiment.labels.length ? undefined : "Tag"} kind="ghost" small not={not}>
      <Tags experiment={experiment} />
    </Popover>
  );
}

function Tags({ experiment }: { experiment: Experiment }) {
  const [name, setName] = useState("");
  const act = useAct();
  const used = useData<{ labels: string[] }>("experiment/labels");
  const put = (labels: string[], done: string) => act("PATCH", `experiments/${experiment.id}`, { labels }, done);
  const add = async (tag: string) => {
    if (tag && !experiment.labels.includes(tag) && (await put([...experiment.labels, tag], `Added the tag ${tag} to ${experiment.name}`)))
      setName("");
  };
  const wanted = name.trim().toLowerCase();
  const offered = (used.data?.labels ?? []).filter((tag) => !experiment.labels.includes(tag) && tag.toLowerCase().includes(wanted));
  return (
    <form
      className="form tags-form"
      onSubmit={(event) => {
        event.preventDefault();
        void add(name.trim());
      }}
    >
      {experiment.labels.length > 0 && (
        <div className="chips">
          {experiment.labels.map((tag) => (
            <Chip
              key={tag}
              onRemove={() =>
                void put(
                  experiment.labels.filter((other) => other !== tag),
                  `Took ${tag} off ${experiment.name}`,
                )
              }
            >
              {tag}
            </Chip>
          ))}
        </div>
      )}
      <TextField label="New tag" value={name} onChange={setName} autoFocus />
      {offered.length > 0 && (
        <div className="chips">
          {offered.slice(0, OFFERED).map((tag) => (
            <Button key={tag} small onClick={() => void add(tag)}>
              {tag}
            </Button>
          ))}
        </div>
      )}
      <Button type="submit" kind="primary" small not={name.trim() ? undefined : "Type a name"}>
        Add tag
      </Button>
    </form>
  );
}
