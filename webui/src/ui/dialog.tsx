/** Windows that ask for something before it is done. */

import { type ReactNode, Suspense } from "react";

import { Button } from "./button";
import { part } from "./heavy";
import { type Question, tellHost } from "./host";

const DialogBox = part((from) => from.DialogBox);

export interface DialogProps {
  title: ReactNode;
  /** What it is about, below the title. */
  said?: ReactNode;
  onClose: () => void;
  children?: ReactNode;
  /** Buttons; a form has them inside, in a `DialogFoot`. */
  foot?: ReactNode;
  wide?: boolean;
}

interface FootProps {
  onClose: () => void;
  children: ReactNode;
  icon?: ReactNode;
  disabled?: boolean;
}

/** Open as long as it is there. */
export const Dialog = (props: DialogProps) => (
  <Suspense>
    <DialogBox {...props} />
  </Suspense>
);

/** The end of a form in a dialog: leaves it as it is, or does what `children` say. */
export const DialogFoot = ({ onClose, children, icon, disabled }: FootProps) => (
  <div className="dialog-foot">
    <Button onClick={onClose}>Cancel</Button>
    <Button type="submit" kind="primary" icon={icon} disabled={disabled}>
      {children}
    </Button>
  </div>
);

/** Asks once before something is done; true if it shall be. */
export const ask = (question: Question): Promise<boolean> => new Promise((answer) => tellHost({ kind: "question", question, answer }));

export type { Question };
