import { Plus, X } from "lucide-react";
import { useEffect, useState } from "react";

import { Button, IconButton } from "../ui/button";
import type { Column } from "./columns";
import { empty, type Field, field, format, type Group, type Node } from "./query";
import { STATES } from "./suggest";

const OPERATORS: Record<string, string> = {
  "=": "is",
  "!=": "is not",
  contains: "contains",
  notContains: "does not contain",
  "<": "<",
  "<=": "≤",
  ">": ">",
  ">=": "≥",
  isEmpty: "is empty",
  notEmpty: "is not empty",
};
const UNARY = ["isEmpty", "notEmpty"];

/** Keeps conditions that are not complete yet, which the query text cannot hold. */
export function FilterForm({ tree, columns, onChange }: { tree: Group; columns: Column[]; onChange: (tree: Group) => void }) {
  const [draft, setDraft] = useState(tree);
  const written = format(tree);
  // biome-ignore lint/correctness/useExhaustiveDependencies: trees with the same text are equal
  useEffect(() => setDraft((before) => (format(before) === written ? before : tree)), [written]);
  const change = (next: Group) => {
    setDraft(next);
    onChange(next);
  };
  return (
    <fieldset className="form-tree">
      <legend className="vh">Filter</legend>
      <GroupRows group={draft} columns={columns} onChange={change} />
    </fieldset>
  );
}

function GroupRows({
  group,
  columns,
  onChange,
  onRemove,
}: {
  group: Group;
  columns: Column[];
  onChange: (group: Group) => void;
  onRemove?: () => void;
}) {
  const put = (at: number, child: Node | null) =>
    onChange({ ...group, children: group.children.flatMap((node, index) => (index === at ? (child ? [child] : []) : [node])) });
  const add = (child: Node) => onChange({ ...group, children: [...group.children, child] });
  return (
    <div className="group">
      <span className="toolbar">
        <label>
          <span className="vh">Conditions to match</span>
          <select
            className="sel s"
            value={group.conjunction}
            onChange={(event) => onChange({ ...group, conjunction: event.target.value as "and" | "or" })}
          >
            <option value="and">all of these</option>
            <option value="or">any of these</option>
          </select>
        </label>
        <Button small icon={<Plus />} onClick={() => add(field("state", "=", ""))}>
          Add condition
        </Button>
        <Button small icon={<Plus />} onClick={() => add({ ...empty(), conjunction: "or", children: [field("tags", "contains", "")] })}>
          Add group
        </Button>
        {onRemove && (
          <Button small kind="ghost" onClick={onRemove}>
            Remove group
          </Button>
        )}
      </span>
      {group.children.map((child, at) =>
        child.kind === "group" ? (
          <GroupRows key={at} group={child} columns={columns} onChange={(next) => put(at, next)} onRemove={() => put(at, null)} />
        ) : (
          <Condition key={at} field={child} columns={columns} onChange={(next) => put(at, next)} onRemove={() => put(at, null)} />
        ),
      )}
    </div>
  );
}

function Condition({
  field: condition,
  columns,
  onChange,
  onRemove,
}: {
  field: Field;
  columns: Column[];
  onChange: (field: Field) => void;
  onRemove: () => void;
}) {
  const listed = columns.some(({ id }) => id === condition.columnName);
  return (
    <span className="toolbar">
      <select
        className="sel s"
        aria-label="Column"
        value={condition.columnName}
        onChange={(event) => onChange({ ...condition, columnName: event.target.value })}
      >
        {!listed && <option>{condition.columnName}</option>}
        {columns.map(({ id, head, folder }) => (
          <option key={id} value={id}>
            {folder === "General" ? head : id}
          </option>
        ))}
      </select>
      <select
        className="sel s"
        aria-label="Operator"
        value={condition.operator}
        onChange={(event) => onChange({ ...condition, operator: event.target.value })}
      >
        {Object.entries(OPERATORS).map(([id, words]) => (
          <option key={id} value={id}>
            {words}
          </option>
        ))}
      </select>
      {!UNARY.includes(condition.operator) &&
        (condition.columnName === "state" ? (
          <select
            className="sel s"
            aria-label="Value"
            value={condition.value}
            onChange={(event) => onChange({ ...condition, value: event.target.value })}
          >
            <option value="">any</option>
            {[...new Set([...STATES, condition.value])].filter(Boolean).map((state) => (
              <option key={state}>{state}</option>
            ))}
          </select>
        ) : (
          <input
            className="input"
            style={{ width: 180, height: 26 }}
            aria-label="Value"
            value={condition.value}
            onChange={(event) => onChange({ ...condition, value: event.target.value })}
          />
        ))}
      <IconButton icon={<X />} label={`Remove condition on ${condition.columnName}`} onClick={onRemove} />
    </span>
  );
}
