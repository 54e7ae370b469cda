import { Autocomplete } from "@base-ui/react/autocomplete";
import { Search, TriangleAlert } from "lucide-react";
import { useEffect, useId, useMemo, useState } from "react";
import { sentence } from "../parts/format";

import { format, parse } from "./query";
import { type Known, problem, type Suggestion, suggestions } from "./suggest";

const SETTLE_MS = 300;

function same(text: string, other: string): boolean {
  if (text === other) return true;
  try {
    return format(parse(text)) === format(parse(other));
  } catch {
    return false;
  }
}

/** An input that completes a query as it is typed. Errors show below it, and the list keeps the last valid query. */
export function QueryBox({ text, vocabulary, onChange }: { text: string; vocabulary: Known; onChange: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  const [open, setOpen] = useState(false);
  const below = useId();
  useEffect(() => setTyped((before) => (same(before, text) ? before : text)), [text]);
  const wrong = useMemo(() => problem(typed, vocabulary), [typed, vocabulary]);
  const items = useMemo(() => suggestions(typed, vocabulary), [typed, vocabulary]);
  // A query that a completion may still make valid is not an error yet.
  const shown = items.length ? "" : wrong;
  useEffect(() => {
    const timer = setTimeout(() => typed !== text && !wrong && onChange(typed), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [typed, text, wrong, onChange]);
  return (
    <div className="query-box">
      <Autocomplete.Root
        items={items}
        mode="none"
        value={typed}
        onValueChange={setTyped}
        // An open list, even an empty one, hides the page from screen readers.
        open={open && items.length > 0}
        onOpenChange={setOpen}
        itemToStringValue={(suggestion: Suggestion) => suggestion.text}
      >
        <span className={`field q ${shown ? "err" : ""}`}>
          <Search className="s" />
          <Autocomplete.Input
            type="search"
            aria-label="Query"
            placeholder="state:ACTIVE hp.lr<1e-3 tag:sweep, or a part of the name"
            aria-invalid={Boolean(shown)}
            aria-describedby={below}
            spellCheck={false}
          />
        </span>
        <Autocomplete.Portal>
          <Autocomplete.Positioner className="over" sideOffset={4} align="start">
            <Autocomplete.Popup className="menu-box" hidden={!items.length}>
              <Autocomplete.List>
                {(suggestion: Suggestion) => (
                  <Autocomplete.Item key={suggestion.label} className="mi mono" value={suggestion}>
                    <span className="cut">{suggestion.label}</span>
                  </Autocomplete.Item>
                )}
              </Autocomplete.List>
            </Autocomplete.Popup>
          </Autocomplete.Positioner>
        </Autocomplete.Portal>
      </Autocomplete.Root>
      <div id={below} className={shown ? "hint err" : "vh"} role="status">
        {shown && (
          <>
            <TriangleAlert className="s" />
            <span>{sentence(shown)} The list still shows the results of the last valid query.</span>
          </>
        )}
      </div>
    </div>
  );
}
