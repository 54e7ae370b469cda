/** The details of a row, at the right of its list; the link says which row is open. */

import { ChevronDown, ChevronUp, X } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { useSearchParams } from "react-router";

import { IconButton } from "./button";
import { isCovered, useKey } from "./keys";

/** The value of `?open=`, and a function that sets it. */
export function useOpen(): [string | null, (id: string | null) => void] {
  const [params, setParams] = useSearchParams();
  const set = (id: string | null) =>
    setParams(
      (before) => {
        if (id === null) before.delete("open");
        else before.set("open", id);
        return before;
      },
      { replace: true },
    );
  return [params.get("open"), set];
}

export function Drawer({
  title,
  onClose,
  onStep,
  head,
  children,
  label,
  wide = false,
}: {
  title: ReactNode;
  onClose: () => void;
  /** To the next or previous row. */
  onStep?: (by: 1 | -1) => void;
  head?: ReactNode;
  children: ReactNode;
  label?: string;
  /** For side-by-side content. */
  wide?: boolean;
}) {
  const box = useRef<HTMLElement>(null);
  const before = useRef<Element | null>(null);
  useEffect(() => {
    before.current = document.activeElement;
    box.current?.focus({ preventScroll: true });
    return () => (before.current as HTMLElement | null)?.focus?.({ preventScroll: true });
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && !event.defaultPrevented && !isCovered() && onClose();
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [onClose]);
  useKey({ j: () => onStep?.(1), k: () => onStep?.(-1) });
  return (
    <aside
      className={`drawer ${wide ? "wide" : ""}`}
      ref={box}
      tabIndex={-1}
      aria-label={label ?? (typeof title === "string" ? title : "Details")}
    >
      <header>
        <h2>{title}</h2>
        {head}
        {onStep && (
          <>
            <IconButton icon={<ChevronUp />} label="Previous" keys="K" onClick={() => onStep(-1)} />
            <IconButton icon={<ChevronDown />} label="Next" keys="J" onClick={() => onStep(1)} />
          </>
        )}
        <IconButton icon={<X />} label="Close" keys="Esc" onClick={onClose} />
      </header>
      <div className="body">{children}</div>
    </aside>
  );
}
