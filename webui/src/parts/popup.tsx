import { type ReactNode, useEffect, useId, useRef, useState } from "react";

/** A button that opens a small window below it; its content is there only while it is open. */
export function Popup({ name, label, action, children }: { name: string; label?: string; action?: string; children: ReactNode }) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const element = box.current!;
    const toggled = (event: Event) => setOpen((event as ToggleEvent).newState === "open");
    element.addEventListener("toggle", toggled);
    return () => element.removeEventListener("toggle", toggled);
  }, []);
  useEffect(() => {
    if (!open) return;
    const below = button.current!.getBoundingClientRect();
    const element = box.current!;
    const { width, height } = element.getBoundingClientRect();
    element.style.left = `${Math.max(8, Math.min(below.left, innerWidth - width - 8))}px`;
    element.style.top = `${Math.max(8, Math.min(below.bottom + 4, innerHeight - height - 8))}px`;
    element.querySelector<HTMLElement>("button:not(:disabled), input, select")?.focus();
  }, [open]);
  return (
    <>
      <button ref={button} type="button" popoverTarget={id} aria-label={label} data-action={action} className={label ? "more" : undefined}>
        {name}
      </button>
      <div ref={box} id={id} popover="auto" className="popup">
        {open && children}
      </div>
    </>
  );
}
