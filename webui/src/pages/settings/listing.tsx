/**
 * A settings section that is a list: a head with the one action that adds to it, its rows, and a text for when it is
 * empty.
 */

import { Plus } from "lucide-react";
import type { ReactNode } from "react";

import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { Empty, Loaded } from "../../ui/status";
import { Table, type TableProps } from "../../ui/table";

interface Listing<Answer, Row> extends Omit<TableProps<Row>, "rows" | "name" | "empty"> {
  title: string;
  /** Name of the table, if the title is a sentence. */
  name?: string;
  answer: { data?: Answer; error: unknown; isPending: boolean; refetch?: () => unknown };
  rows: (answer: Answer) => Row[];
  /** The action that adds a row. Users without permission see it disabled, with the reason. */
  make?: { verb: string; act: () => void; not?: string };
  /** Beside that action, such as a search. */
  tools?: ReactNode;
  /** Number of rows, for the head. */
  count?: number;
  empty?: { icon: ReactNode; title: string; command: string; children: ReactNode };
}

export function Listing<Answer, Row>({
  title,
  name = title,
  answer: fetched,
  rows,
  make,
  tools,
  count,
  empty,
  ...table
}: Listing<Answer, Row>) {
  const add = make && (
    <Button small kind="primary" icon={<Plus />} not={make.not} onClick={make.act}>
      {make.verb}
    </Button>
  );
  return (
    <Card
      title={title}
      count={count}
      flush
      more={
        (tools || add) && (
          <>
            {tools}
            {add}
          </>
        )
      }
    >
      <Loaded answer={fetched}>
        {(answer) => {
          const there = rows(answer);
          return there.length || !empty ? <Table name={name} rows={there} {...table} /> : <Empty {...empty} />;
        }}
      </Loaded>
    </Card>
  );
}
