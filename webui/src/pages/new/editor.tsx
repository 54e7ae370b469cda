/** The configuration editor: syntax colours, completion at the cursor, and errors beside their lines. */

import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";

import { Colours } from "../../code/colours";
import { type Known, type Offers, offers, type Wrong } from "./yaml";

const MOST = 12;
const NOTHING: Offers = { from: 0, offers: [] };
const LINE_PX = 19;
const PAD_PX = 10;

interface Props {
  text: string;
  onChange: (text: string) => void;
  fields: Known[];
  wrong: Wrong[];
}

export function Editor({ text, onChange, fields, wrong }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const [at, setAt] = useState<number | null>(null);
  const [place, setPlace] = useState(0);
  const offered = useMemo(() => (at === null ? NOTHING : offers(text, at, fields)), [text, at, fields]);
  const shown = offered.offers.slice(0, MOST);
  const lines = text.split("\n");
  const marked = new Map(wrong.map((wrong) => [wrong.line, wrong]));
  const typed = (value: string, caret: number) => {
    onChange(value);
    setAt(caret);
    setPlace(0);
  };
  const insert = (what: string, from: number, to: number) => {
    const field = area.current!;
    // Changes the field directly, so that the caret is right for the next key stroke.
    field.setRangeText(what, from, to, "end");
    typed(field.value, from + what.length);
    if (!what.endsWith(" ")) setAt(null);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const { selectionStart: caret, selectionEnd: end } = event.currentTarget;
    if (event.key === " " && event.ctrlKey) setAt(caret);
    else if (event.key === "Enter" && (!shown.length || !isOpen(text, at, offered))) {
      const indent = /^(\s*(?:- )?)(.*)$/.exec(text.slice(text.lastIndexOf("\n", caret - 1) + 1, caret))!;
      const deeper = /:\s*$/.test(indent[2]!) ? "  " : "";
      insert(`\n${indent[1]!.replace("- ", "  ")}${deeper}`, caret, end);
      setAt(null);
    } else if (!shown.length) return;
    else if (event.key === "ArrowDown") setPlace((place + 1) % shown.length);
    else if (event.key === "ArrowUp") setPlace((place + shown.length - 1) % shown.length);
    else if (event.key === "Enter" || event.key === "Tab") insert(shown[place]!.insert, offered.from, caret);
    else if (event.key === "Escape") setAt(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const isOffered = shown.length > 0;
  // The list opens below its line, and the last line in sight has nothing below it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list moves with the cursor
  useEffect(() => {
    if (isOffered) document.getElementById(`${id}-${place}`)?.scrollIntoView({ block: "nearest" });
  }, [isOffered, id, place, at]);
  const before = at === null ? "" : text.slice(0, at);
  const row = before.split("\n").length;
  const column = before.length - before.lastIndexOf("\n") - 1;
  return (
    <div className="editor">
      <ol className="gutter" aria-hidden style={{ counterReset: "line" }}>
        {lines.map((_, number) => (
          <li key={number} className={marked.has(number) ? "wrong" : ""} title={marked.get(number)?.message} />
        ))}
      </ol>
      <div className="paper">
        <pre aria-hidden className="under">
          <Colours text={`${text}\n`} language="yaml" />
        </pre>
        <textarea
          ref={area}
          aria-label="Configuration"
          aria-describedby={`${id}-help`}
          aria-invalid={wrong.length > 0}
          aria-haspopup="listbox"
          aria-controls={shown.length ? `${id}-offers` : undefined}
          aria-autocomplete="list"
          aria-activedescendant={shown.length ? `${id}-${place}` : undefined}
          value={text}
          rows={Math.max(lines.length + 1, 18)}
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          wrap="off"
          onChange={(event) => typed(event.target.value, event.target.selectionStart)}
          onKeyDown={onKeyDown}
          onClick={() => setAt(null)}
          onBlur={() => setAt(null)}
        />
        {shown.length > 0 && (
          <div
            id={`${id}-offers`}
            role="listbox"
            aria-label="Suggestions"
            className="menu-box offers"
            style={{ top: row * LINE_PX + PAD_PX, left: `calc(${Math.max(0, column - (at! - offered.from))}ch + ${PAD_PX}px)` }}
          >
            {shown.map((offer, number) => (
              // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus and names the option
              <div
                key={offer.label}
                id={`${id}-${number}`}
                role="option"
                aria-selected={number === place}
                onPointerDown={(event) => {
                  event.preventDefault();
                  insert(offer.insert, offered.from, at!);
                  area.current?.focus();
                }}
              >
                <b>{offer.label}</b> <span>{offer.hint}</span>
              </div>
            ))}
          </div>
        )}
      </div>
      <p id={`${id}-help`} className="vh">
        Ctrl+Space suggests what is allowed at the cursor; Enter or Tab inserts it.
      </p>
    </div>
  );
}

/** Closed while the word is empty, so that Enter starts a new line. */
const isOpen = (text: string, at: number | null, offers: Offers) => at !== null && text.slice(offers.from, at) !== "";
