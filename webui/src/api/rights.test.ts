import { expect, test } from "vitest";

import { ANYWHERE, whyNot } from "./rights";
import type { User } from "./types";

const user = { id: 3, username: "ann" } as User;
const basic = { user, access: { rbac: false, everywhere: ["edit", "create"], own: ["control", "delete"], workspaces: {} } };
const roles = { user, access: { rbac: true, everywhere: ["view"], own: [], workspaces: { "5": ["control", "create"] } } };

test("by ownership, what is one's own may be controlled, whatever name it was made under", () => {
  expect(whyNot(basic, "control", { username: "ann", userId: 3 })).toBe("");
  expect(whyNot(basic, "control", { username: "olga", userId: 3 })).toBe("");
  expect(whyNot(basic, "control", { username: "ann", userId: null })).toBe("");
  expect(whyNot(basic, "control", { username: "bob", userId: 4 })).toBe("only bob and administrators may");
  expect(whyNot(basic, "delete", {})).toBe("only its owner and administrators may");
  expect(whyNot(basic, "edit", { username: "bob", userId: 4 })).toBe("");
});

test("what is neither everybody's nor owned is for administrators", () => {
  expect(whyNot(basic, "administer_cluster")).toBe("only administrators may");
  expect(whyNot(basic, "administer_users", { username: "ann", userId: 3 })).toBe("only administrators may");
});

test("by roles, the workspace decides and the owner does not", () => {
  expect(whyNot(roles, "control", { username: "bob", userId: 4, workspaceId: 5 })).toBe("");
  expect(whyNot(roles, "control", { username: "ann", userId: 3, workspaceId: 6 })).toBe("your roles do not permit this here");
  expect(whyNot(roles, "administer_cluster")).toBe("your roles do not permit this");
});

test("what is yet to be created asks whether there is any place for it", () => {
  expect(whyNot(roles, "create", ANYWHERE)).toBe("");
  expect(whyNot(roles, "create_task", ANYWHERE)).toBe("your roles do not permit this");
  expect(whyNot(basic, "create", ANYWHERE)).toBe("");
});
