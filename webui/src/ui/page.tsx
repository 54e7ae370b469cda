import { type ReactNode, useRef } from "react";

import { useKey } from "./keys";
import { useNarrow } from "./media";
import { State } from "./state";
import { Tag } from "./text";

export { useActionsHere, usePlace } from "./place";

/** Tags that a head shows. */
const [SHOWN, SHOWN_NARROW] = [3, 2];

/**
 * The head of a page: title in one line, state, tags; below them at most five facts; actions at the right, with `.` for
 * their menu.
 */
export function PageHead({
  title,
  id,
  state,
  tags = [],
  tagged,
  facts = [],
  actions,
  beside,
}: {
  title: ReactNode;
  id?: ReactNode;
  state?: string;
  tags?: string[];
  /** After the tags: the button that edits them. */
  tagged?: ReactNode;
  facts?: ReactNode[];
  actions?: ReactNode;
  /** Small text beside the title. */
  beside?: ReactNode;
}) {
  const most = useNarrow() ? SHOWN_NARROW : SHOWN;
  const shown = facts.filter(Boolean);
  const acts = useRef<HTMLDivElement>(null);
  const openMenu = () => {
    // A row in focus has its own menu.
    if (!document.activeElement?.closest("tr[data-row]")) acts.current?.querySelector<HTMLElement>('[data-action="more"]')?.click();
  };
  useKey({ ".": openMenu });
  return (
    <div className="page-head head">
      <div className="t">
        <div className="l1">
          <h1 title={typeof title === "string" ? title : undefined}>
            {id !== undefined && <span className="id">{id}</span>}
            {title}
          </h1>
          {state && <State state={state} pill />}
          {tags.slice(0, most).map((tag) => (
            <Tag key={tag}>{tag}</Tag>
          ))}
          {tags.length > most && (
            <span className="ink3 sm nowrap" title={tags.slice(most).join(", ")}>
              {tags.length - most} more
            </span>
          )}
          {tagged}
          {beside && <span className="beside">{beside}</span>}
        </div>
        {shown.length > 0 && (
          <div className="l2">
            {shown.map((fact, at) => (
              <span key={at} className="fact">
                {fact}
              </span>
            ))}
          </div>
        )}
      </div>
      {actions && (
        <div ref={acts} className="acts">
          {actions}
        </div>
      )}
    </div>
  );
}
