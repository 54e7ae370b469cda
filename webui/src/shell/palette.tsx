/** The Ctrl K palette: everything that has a name, and the actions on the current page. */

import { Autocomplete } from "@base-ui/react/autocomplete";
import { Dialog } from "@base-ui/react/dialog";
import { Search } from "lucide-react";
import { type RefObject, useEffect, useLayoutEffect, useMemo, useState } from "react";
import { useNavigate } from "react-router";

import { useExperimentMenu } from "../lists/acts";
import type { MenuItem } from "../ui/menu";
import { Keys } from "../ui/text";
import { type Found, type Group, useFound } from "./finding";

/** The actions on a search result; null while searching everything. */
function useActsOn(hit: Found | undefined, text: string): Group[] | null {
  const { items } = useExperimentMenu();
  return useMemo(() => {
    if (!hit?.acts) return null;
    const wanted = text.trim().toLowerCase();
    const acts = items(hit.acts)
      // Moving needs a dialog, which only the list and the page have.
      .filter((item): item is MenuItem => item !== null && item.name !== "Move to a project")
      .map((item) => ({ ...item, id: `of ${item.name}` }));
    const all: Found[] = [{ id: "open", name: "Open", to: hit.to }, ...acts];
    return [{ name: `Actions on ${hit.name}`, items: all.filter((action) => action.name.toLowerCase().includes(wanted)) }];
  }, [hit, items, text]);
}

/** `typed` holds what was typed while the palette was on its way. */
export function Palette({ typed, onClose }: { typed: RefObject<string>; onClose: () => void }) {
  const [text, setText] = useState("");
  const [lit, setLit] = useState<Found>();
  const [within, setWithin] = useState<Found>();
  const anywhere = useFound(text);
  const acts = useActsOn(within, text);
  const groups = acts ?? anywhere.groups;
  const isCurrent = acts !== null || anywhere.isCurrent;
  const [entered, setEntered] = useState<string>();
  const navigate = useNavigate();
  const items = useMemo(() => groups.map((group) => ({ ...group, value: group.name })), [groups]);
  const choose = (hit: Found) => {
    onClose();
    if (hit.to) navigate(hit.to);
    else if (hit.href) location.assign(hit.href);
    else hit.act?.();
  };
  // Not before this is on the page: until then letters still go to `typed`.
  useLayoutEffect(() => setText(typed.current), [typed]);
  useEffect(() => {
    if (entered !== text || !isCurrent) return;
    setEntered(undefined);
    const best = groups.flatMap((group) => group.items).find((hit) => !hit.not);
    if (best) choose(best);
  });
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="veil" />
        <Dialog.Viewport className="dialog-place">
          <Dialog.Popup className="dialog palette" aria-label="Search or jump to">
            <Autocomplete.Root
              open
              inline
              mode="none"
              items={items}
              value={text}
              onValueChange={(value) => {
                setText(value);
                setEntered(undefined);
              }}
              itemToStringValue={(hit: Found) => hit.name}
              onItemHighlighted={(hit: Found | undefined) => setLit(hit)}
              autoHighlight="always"
              keepHighlight
            >
              <div className="ask">
                <Search />
                <Autocomplete.Input
                  aria-label="Search or jump to"
                  placeholder="Any name, # and an ID, or > and an action"
                  spellCheck={false}
                  // The dialog gives the focus some time later, and letters typed until then would be lost.
                  autoFocus
                  onKeyDown={(event) => {
                    // The dialog listens only some time after it is shown.
                    if (event.key === "Escape" && !event.nativeEvent.isComposing) return onClose();
                    // Enter right after the text: the list may still be that of an earlier one, and its first row
                    // something else. A second Enter takes what is shown.
                    if (event.key === "Enter" && !isCurrent && entered !== text) {
                      event.preventBaseUIHandler();
                      setEntered(text);
                      return;
                    }
                    const enters = event.key === "Tab" && !event.shiftKey && !within && lit?.acts;
                    const leaves = within && ((event.key === "Backspace" && !text) || (event.key === "Tab" && event.shiftKey));
                    if (!enters && !leaves) return;
                    event.preventDefault();
                    setWithin(enters ? lit : undefined);
                    setText("");
                  }}
                />
                <kbd>Esc</kbd>
              </div>
              <div className="found">
                <Autocomplete.Empty>{text ? <p className="ink2 sm">Nothing matches.</p> : null}</Autocomplete.Empty>
                <Autocomplete.List>
                  {(group: Group & { value: string }) => (
                    <Autocomplete.Group key={group.name} items={group.items}>
                      <Autocomplete.GroupLabel className="mh">{group.name}</Autocomplete.GroupLabel>
                      <Autocomplete.Collection>
                        {(hit: Found) => (
                          <Autocomplete.Item
                            key={hit.id}
                            className={`mi ${hit.danger ? "bad" : ""}`}
                            value={hit}
                            disabled={Boolean(hit.not)}
                            onClick={() => choose(hit)}
                          >
                            {hit.icon}
                            <span className="cut">{hit.name}</span>
                            {hit.more && <span className="ink3 sm cut">{hit.more}</span>}
                            {hit.not ? <span className="why">{hit.not}</span> : hit.keys ? <Keys keys={hit.keys} /> : null}
                          </Autocomplete.Item>
                        )}
                      </Autocomplete.Collection>
                    </Autocomplete.Group>
                  )}
                </Autocomplete.List>
              </div>
            </Autocomplete.Root>
            <div className="foot">
              <span>
                <kbd>Enter</kbd> opens
              </span>
              <span>
                <kbd>Tab</kbd> {within ? "with Shift goes back" : "shows the actions of an experiment"}
              </span>
              <span>
                <kbd>&gt;</kbd> actions only
              </span>
              <span>
                <kbd>#</kbd> ids
              </span>
            </div>
          </Dialog.Popup>
        </Dialog.Viewport>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
