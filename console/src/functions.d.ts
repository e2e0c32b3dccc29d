declare module 'virtual:functions' {
  /** The functions of SQL over files. */
  const names: string[];
  export default names;
}
