import { useEffect, useState } from "react";

import type { Column } from "./columns";
import { empty, type Field, field, format, type Group, type Node, parse, QueryError } from "./query";

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
const STATES = ["ACTIVE", "RUNNING", "QUEUED", "PAUSED", "COMPLETED", "CANCELED", "ERROR"];
const UNARY = ["isEmpty", "notEmpty"];
const SETTLE_MS = 300;

/** The query as text and, on demand, as a form; what is done to one is seen in the other. */
export function Filters({ text, columns, onChange }: { text: string; columns: Column[]; onChange: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  const [open, setOpen] = useState(false);
  useEffect(() => setTyped((before) => (same(before, text) ? before : text)), [text]);
  useEffect(() => {
    const timer = setTimeout(() => typed !== text && !told(typed) && onChange(typed), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [typed, text, onChange]);
  const problem = told(typed);
  return (
    <div className="filters">
      <label>
        <span className="hidden">Query</span>
        <input
          type="search"
          className="query"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          placeholder="state:ACTIVE hp.lr<1e-3 tag:sweep or a part of the name"
          aria-invalid={Boolean(problem)}
          aria-describedby="query-problem"
          spellCheck={false}
        />
      </label>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        Filter
      </button>
      <span id="query-problem" className="bad" role="status">
        {problem}
      </span>
      {open && <Form tree={problem ? empty() : parse(typed)} columns={columns} onChange={(tree) => setTyped(format(tree))} />}
    </div>
  );
}

function told(text: string): string {
  try {
    parse(text);
    return "";
  } catch (error) {
    if (error instanceof QueryError) return error.message;
    throw error;
  }
}

const same = (one: string, other: string) => one === other || (!told(one) && !told(other) && format(parse(one)) === format(parse(other)));

/** Keeps what is not filled in yet, which no text says. */
function Form({ tree, columns, onChange }: { tree: Group; columns: Column[]; onChange: (tree: Group) => void }) {
  const [draft, setDraft] = useState(tree);
  const said = format(tree);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a tree that says the same is no other
  useEffect(() => setDraft((before) => (format(before) === said ? before : tree)), [said]);
  const change = (next: Group) => {
    setDraft(next);
    onChange(next);
  };
  return (
    <fieldset className="card form-tree">
      <legend className="hidden">Filter</legend>
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
    onChange({ ...group, children: group.children.flatMap((one, index) => (index === at ? (child ? [child] : []) : [one])) });
  const add = (child: Node) => onChange({ ...group, children: [...group.children, child] });
  return (
    <div className="group">
      <span className="actions">
        <label>
          <span className="hidden">Which conditions must hold</span>
          <select value={group.conjunction} onChange={(event) => onChange({ ...group, conjunction: event.target.value as "and" | "or" })}>
            <option value="and">all of these</option>
            <option value="or">any of these</option>
          </select>
        </label>
        <button type="button" onClick={() => add(field("state", "=", ""))}>
          Add condition
        </button>
        <button type="button" onClick={() => add({ ...empty(), conjunction: "or", children: [field("tags", "contains", "")] })}>
          Add group
        </button>
        {onRemove && (
          <button type="button" onClick={onRemove}>
            Remove group
          </button>
        )}
      </span>
      {group.children.map((child, at) =>
        child.kind === "group" ? (
          <GroupRows key={at} group={child} columns={columns} onChange={(next) => put(at, next)} onRemove={() => put(at, null)} />
        ) : (
          <Condition key={at} one={child} columns={columns} onChange={(next) => put(at, next)} onRemove={() => put(at, null)} />
        ),
      )}
    </div>
  );
}

function Condition({
  one,
  columns,
  onChange,
  onRemove,
}: {
  one: Field;
  columns: Column[];
  onChange: (field: Field) => void;
  onRemove: () => void;
}) {
  const known = columns.some(({ id }) => id === one.columnName);
  return (
    <span className="actions">
      <select aria-label="Column" value={one.columnName} onChange={(event) => onChange({ ...one, columnName: event.target.value })}>
        {!known && <option>{one.columnName}</option>}
        {columns.map(({ id, label, of }) => (
          <option key={id} value={id}>
            {of === "General" ? label : id}
          </option>
        ))}
      </select>
      <select aria-label="Operator" value={one.operator} onChange={(event) => onChange({ ...one, operator: event.target.value })}>
        {Object.entries(OPERATORS).map(([id, words]) => (
          <option key={id} value={id}>
            {words}
          </option>
        ))}
      </select>
      {!UNARY.includes(one.operator) &&
        (one.columnName === "state" ? (
          <select aria-label="Value" value={one.value} onChange={(event) => onChange({ ...one, value: event.target.value })}>
            <option value="">any</option>
            {[...new Set([...STATES, one.value])].filter(Boolean).map((state) => (
              <option key={state}>{state}</option>
            ))}
          </select>
        ) : (
          <input aria-label="Value" value={one.value} onChange={(event) => onChange({ ...one, value: event.target.value })} />
        ))}
      <button type="button" onClick={onRemove} aria-label={`Remove condition on ${one.columnName}`}>
        ✕
      </button>
    </span>
  );
}
