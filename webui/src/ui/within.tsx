/** Links in cells of lists: as plain as a link can be, because a list that scrolls draws hundreds of them a second. */

import { type ReactNode, useEffect } from "react";
import { useNavigate } from "react-router";

const BASE = "/det";
const NEW_WINDOW = ["metaKey", "ctrlKey", "shiftKey", "altKey"] as const;

/** `to` is an absolute address within the web UI. */
export const CellLink = ({ to, className, title, children }: { to: string; className?: string; title?: string; children: ReactNode }) => (
  <a className={className} href={BASE + to} data-within={to} title={title}>
    {children}
  </a>
);

/** Opens such links without loading the page anew; what the browser does with other clicks stays. */
export function useLinksWithin() {
  const navigate = useNavigate();
  useEffect(() => {
    const follow = (event: MouseEvent) => {
      const link = (event.target as Element).closest?.<HTMLElement>("a[data-within]");
      if (!link || event.defaultPrevented || event.button !== 0 || NEW_WINDOW.some((key) => event[key])) return;
      event.preventDefault();
      navigate(link.dataset.within!);
    };
    document.addEventListener("click", follow);
    return () => document.removeEventListener("click", follow);
  }, [navigate]);
}
