-- The tables of data/ for engines that do not read files; events stand with those that have lists.
CREATE TABLE employees (id integer, name text, department text, salary double precision, hired date, manager integer);
CREATE TABLE departments (name text, Floor integer, "Head Count" integer);
CREATE TABLE "odd name;DROP" ("select" integer, "from" integer);
CREATE TABLE readings (sensor integer, value integer, year integer);
