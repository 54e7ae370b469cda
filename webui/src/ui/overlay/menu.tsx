import { Menu } from "@base-ui/react/menu";
import { Popover } from "@base-ui/react/popover";
import { Check } from "lucide-react";
import { Fragment, type ReactNode, type RefObject } from "react";
import { useNavigate } from "react-router";

import type { MenuItem, MenuItems } from "../menu";
import { Keys } from "../text";

type Anchor = RefObject<HTMLElement | null>;

/** A press on the anchor button closes the menu, and the button handles that itself. */
const byButton = (anchor: Anchor, event: Event) => anchor.current?.contains(event.target as Node) ?? false;

/** Where the focus was, if that is still there and can have it. */
function back(before: RefObject<Element | null>, anchor: Anchor): HTMLElement | null {
  const element = before.current;
  return element instanceof HTMLElement && element !== document.body && element.isConnected ? element : anchor.current;
}

export function MenuBox({
  anchor,
  before,
  label,
  items,
  onClose,
}: {
  anchor: Anchor;
  before: RefObject<Element | null>;
  label: string;
  items: MenuItems;
  onClose: () => void;
}) {
  return (
    <Menu.Root
      open
      modal={false}
      onOpenChange={(open, { event, reason }) => !open && !(reason === "outside-press" && byButton(anchor, event)) && onClose()}
    >
      <Menu.Portal>
        <Menu.Positioner className="over" anchor={anchor} align="end" sideOffset={4} collisionPadding={8}>
          <Menu.Popup className="menu-box" aria-label={label} finalFocus={() => back(before, anchor)}>
            {items.map((item, at) => (
              <Fragment key={item?.name ?? at}>{item ? <Entry menuItem={item} /> : <Menu.Separator />}</Fragment>
            ))}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

function Entry({ menuItem }: { menuItem: MenuItem }) {
  const navigate = useNavigate();
  const act = () => {
    if (menuItem.href) location.assign(menuItem.href);
    else if (menuItem.to) navigate(menuItem.to);
    else menuItem.act?.();
  };
  return (
    <Menu.Item className={`mi ${menuItem.danger ? "bad" : ""}`} disabled={Boolean(menuItem.not)} label={menuItem.name} onClick={act}>
      {menuItem.checked === undefined ? menuItem.icon : menuItem.checked ? <Check /> : <span style={{ width: 16 }} />}
      <span className="cut">{menuItem.name}</span>
      {menuItem.not ? <span className="why">{menuItem.not}</span> : menuItem.keys ? <Keys keys={menuItem.keys} /> : null}
    </Menu.Item>
  );
}

export function PopoverBox({
  anchor,
  label,
  wide,
  children,
  onClose,
}: {
  anchor: Anchor;
  label: string;
  wide?: boolean;
  children: ReactNode;
  onClose: () => void;
}) {
  return (
    <Popover.Root
      open
      onOpenChange={(open, { event, reason }) => !open && !(reason === "outside-press" && byButton(anchor, event)) && onClose()}
    >
      <Popover.Portal>
        <Popover.Positioner className="over" anchor={anchor} align="start" sideOffset={4} collisionPadding={8}>
          <Popover.Popup className={`pop-box ${wide ? "wide" : ""}`} aria-label={label} finalFocus={anchor}>
            {children}
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
